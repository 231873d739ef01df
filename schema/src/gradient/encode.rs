//! A gradient as slices of bytes for a vectored write: nothing is copied, nothing allocated.

use super::Gradient;
use super::header::{Header, LINE, term};
use crate::Layout;
use std::io::IoSlice;
use zerocopy::IntoBytes;

/// Receives the tensors of a gradient as bytes, in layout order.
pub trait Parts<'a> {
    /// A tensor: its numbers, and its outermost extent if that is known at run time only.
    fn tensor(&mut self, bytes: &'a [u8], run_time_length: Option<usize>);
}

/// Why a gradient could not be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum EncodeError {
    /// The prefix does not fit.
    #[error("the prefix has {found} bytes, header and lengths take {needed}: make it `PREFIX_SIZE` long")]
    Prefix { needed: usize, found: usize },
    /// The slices do not fit.
    #[error("there is room for {found} parts, the gradient may have {needed}: make it `MAX_PARTS` long")]
    Parts { needed: usize, found: usize },
    /// A gradient written by hand.
    #[error("`{layout}` shows other tensors than its layout has")]
    Layout { layout: &'static str },
}

impl Layout {
    /// Bytes of the header and the run-time lengths on the wire.
    #[must_use]
    pub const fn prefix_size(&self) -> usize {
        LINE + (self.run_time_lengths * size_of::<u64>()).next_multiple_of(LINE)
    }
}

#[inline]
pub(super) fn encode<'a, 'p, G: Gradient + ?Sized>(
    gradient: &'a G,
    prefix: &'a mut [u8],
    parts: &'p mut [IoSlice<'a>],
) -> Result<&'p mut [IoSlice<'a>], EncodeError> {
    let (needed, found) = (G::PREFIX_SIZE, prefix.len());
    let Some((prefix, _)) = prefix.split_at_mut_checked(needed) else {
        return Err(EncodeError::Prefix { needed, found });
    };
    let (needed, found) = (G::MAX_PARTS, parts.len());
    let Some((parts, _)) = parts.split_at_mut_checked(needed) else {
        return Err(EncodeError::Parts { needed, found });
    };
    let (header, lengths) = prefix.split_at_mut(LINE);
    let mut slices =
        Slices { totals: Totals::new(G::LAYOUT), lengths, parts: &mut *parts, next: 1, fits: true };
    gradient.parts(&mut slices);
    let Slices { totals, lengths, next, fits, .. } = slices;
    if !fits || totals.lengths != G::LAYOUT.run_time_lengths as u64 {
        return Err(EncodeError::Layout { layout: G::LAYOUT.name });
    }
    lengths[G::LAYOUT.run_time_lengths * size_of::<u64>()..].fill(0);
    header.copy_from_slice(totals.header(G::LAYOUT).as_bytes());
    parts[0] = IoSlice::new(prefix);
    Ok(&mut parts[..next])
}

#[inline]
pub(super) fn header<G: Gradient + ?Sized>(gradient: &G) -> Header {
    let mut totals = Totals::new(G::LAYOUT);
    gradient.parts(&mut totals);
    totals.header(G::LAYOUT)
}

pub(super) fn for_each_part<G: Gradient + ?Sized>(gradient: &G, see: &mut impl FnMut(&[u8])) {
    see(header(gradient).as_bytes());
    let mut lines = Lines { see, line: [0; LINE / size_of::<u64>()], filled: 0 };
    gradient.parts(&mut lines);
    lines.finish();
    gradient.parts(&mut Tensors { see });
}

/// The zeros between a tensor and the next multiple of 64 bytes.
#[inline]
fn padding(length: usize) -> &'static [u8] {
    &[0; LINE][..length.wrapping_neg() % LINE]
}

/// What the header says of all tensors.
struct Totals {
    total_length: u64,
    lengths: u64,
    terms: u64,
}

impl Totals {
    #[inline]
    fn new(layout: &Layout) -> Self {
        Self { total_length: layout.prefix_size() as u64, lengths: 0, terms: 0 }
    }

    #[inline]
    fn header(&self, layout: &Layout) -> Header {
        Header::new(layout, self.total_length, self.terms)
    }
}

impl Parts<'_> for Totals {
    #[inline]
    fn tensor(&mut self, bytes: &[u8], run_time_length: Option<usize>) {
        // A slice is shorter than `isize::MAX` bytes, so rounding it up cannot overflow.
        self.total_length = self.total_length.wrapping_add(bytes.len().next_multiple_of(LINE) as u64);
        if let Some(length) = run_time_length {
            self.terms = self.terms.wrapping_add(term(self.lengths, length as u64));
            self.lengths += 1;
        }
    }
}

/// Fills slices and lengths.
struct Slices<'a, 'p> {
    totals: Totals,
    lengths: &'p mut [u8],
    parts: &'p mut [IoSlice<'a>],
    next: usize,
    fits: bool,
}

impl<'a> Parts<'a> for Slices<'a, '_> {
    #[inline]
    fn tensor(&mut self, bytes: &'a [u8], run_time_length: Option<usize>) {
        if let Some(length) = run_time_length {
            let at = self.totals.lengths as usize * size_of::<u64>();
            match self.lengths.get_mut(at..at + size_of::<u64>()) {
                Some(place) => place.copy_from_slice(&(length as u64).to_le_bytes()),
                None => self.fits = false,
            }
        }
        self.totals.tensor(bytes, run_time_length);
        self.push(bytes);
        self.push(padding(bytes.len()));
    }
}

impl<'a> Slices<'a, '_> {
    #[inline]
    fn push(&mut self, bytes: &'a [u8]) {
        if bytes.is_empty() {
            return;
        }
        match self.parts.get_mut(self.next) {
            Some(part) => *part = IoSlice::new(bytes),
            None => self.fits = false,
        }
        self.next += 1;
    }
}

/// Shows the run-time lengths, a line at a time.
struct Lines<'f, F> {
    see: &'f mut F,
    line: [u64; LINE / size_of::<u64>()],
    filled: usize,
}

impl<F: FnMut(&[u8])> Lines<'_, F> {
    fn finish(&mut self) {
        if self.filled > 0 {
            self.line[self.filled..].fill(0);
            (self.see)(self.line.as_bytes());
            self.filled = 0;
        }
    }
}

impl<F: FnMut(&[u8])> Parts<'_> for Lines<'_, F> {
    fn tensor(&mut self, _: &[u8], run_time_length: Option<usize>) {
        let Some(length) = run_time_length else { return };
        self.line[self.filled] = length as u64;
        self.filled += 1;
        if self.filled == self.line.len() {
            self.finish();
        }
    }
}

/// Shows the tensors.
struct Tensors<'f, F> {
    see: &'f mut F,
}

impl<F: FnMut(&[u8])> Parts<'_> for Tensors<'_, F> {
    fn tensor(&mut self, bytes: &[u8], _: Option<usize>) {
        for part in [bytes, padding(bytes.len())] {
            if !part.is_empty() {
                (self.see)(part);
            }
        }
    }
}
