//! Reads a gradient where it lies: a view borrows the bytes, after every check.
//!
//! The bytes must not change while they are borrowed: private memory, or a region that no peer can write any more.

use super::header::{Header, HeaderError, LINE};
use super::{Gradient, Item};
use crate::layout::Tensor;
use crate::{Element, Layout};
use std::fmt;
use zerocopy::FromBytes;

/// Reads the tensors of a gradient one by one.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The run-time lengths still to come.
    lengths: &'a [u64],
    /// The tensors still to come; a multiple of 64 bytes.
    rest: &'a [u8],
}

/// Why bytes are no gradient of the type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ViewError {
    /// The bytes lie where numbers cannot.
    #[error("the bytes start at an address that is no multiple of 8: receive into aligned memory")]
    Misaligned,
    /// Fewer or more bytes than were sent.
    #[error("{found} bytes where the gradient has {expected}: it is cut short, or something follows it")]
    Length { expected: u64, found: u64 },
    /// The header or the lengths.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A length that goes beyond the end.
    #[error(
        "{tensor} goes beyond the end of the gradient: the sender's lengths and total length contradict each other"
    )]
    Tensor { tensor: TensorName },
    /// Bytes between tensors.
    #[error("the padding after {tensor} is not zero: the gradient was damaged on the way")]
    Padding { tensor: TensorName },
}

/// A tensor for messages: the struct and the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorName {
    /// The struct it is a field of; empty for the lengths.
    pub structure: &'static str,
    /// Its name on the wire.
    pub field: &'static str,
}

impl TensorName {
    const LENGTHS: Self = Self { structure: "", field: "lengths" };
}

impl fmt::Display for TensorName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.structure {
            "" => write!(formatter, "the {}", self.field),
            structure => write!(formatter, "`{structure}.{}`", self.field),
        }
    }
}

#[inline]
pub(super) fn view<G: Gradient>(bytes: &[u8]) -> Result<G::View<'_>, ViewError> {
    let mut reader = Reader::new(bytes, G::LAYOUT)?;
    let view = G::read(&mut reader)?;
    reader.finish(bytes.len())?;
    Ok(view)
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8], layout: &'static Layout) -> Result<Self, ViewError> {
        let words = (layout.prefix_size() - LINE) / size_of::<u64>();
        let Ok((header, rest)) = Header::ref_from_prefix(bytes) else {
            return Err(unreadable(bytes, layout));
        };
        let Ok((words, rest)) = <[u64]>::ref_from_prefix_with_elems(rest, words) else {
            header.check_layout(layout)?;
            return Err(unreadable(bytes, layout));
        };
        let (lengths, padding) = words.split_at(layout.run_time_lengths);
        header.check(layout, lengths)?;
        if header.total_length() != bytes.len() as u64 {
            return Err(ViewError::Length { expected: header.total_length(), found: bytes.len() as u64 });
        }
        if padding.iter().fold(0, |all, word| all | word) != 0 {
            return Err(ViewError::Padding { tensor: TensorName::LENGTHS });
        }
        Ok(Self { lengths, rest })
    }

    /// A tensor of constant shape.
    #[inline]
    pub(super) fn item<X: Item>(&mut self, name: TensorName) -> Result<&'a X, ViewError> {
        let (item, _) = X::ref_from_prefix(self.rest).map_err(|_| beyond(name))?;
        self.skip(size_of::<X>(), name)?;
        Ok(item)
    }

    /// A tensor whose length comes with the header.
    #[inline]
    pub(super) fn items<X: Item>(&mut self, name: TensorName) -> Result<&'a [X], ViewError> {
        let length = self.length().ok_or_else(|| beyond(name))?;
        let (items, _) = <[X]>::ref_from_prefix_with_elems(self.rest, length).map_err(|_| beyond(name))?;
        self.skip(size_of_val(items), name)?;
        Ok(items)
    }

    /// The numbers of a tensor of this layout.
    pub(super) fn numbers<T: Element>(
        &mut self,
        tensor: &Tensor,
        name: TensorName,
    ) -> Result<&'a [T], ViewError> {
        let items = if tensor.run_time_length { self.length() } else { Some(1) };
        let numbers =
            items.and_then(|items| items.checked_mul(tensor.elements())).ok_or_else(|| beyond(name))?;
        let (numbers, _) = <[T]>::ref_from_prefix_with_elems(self.rest, numbers).map_err(|_| beyond(name))?;
        self.skip(size_of_val(numbers), name)?;
        Ok(numbers)
    }

    /// The next run-time length.
    #[inline]
    fn length(&mut self) -> Option<usize> {
        let (length, rest) = self.lengths.split_first()?;
        self.lengths = rest;
        usize::try_from(*length).ok()
    }

    /// Goes on to the next tensor, once the padding after this one of `size` bytes is seen to be zero.
    #[inline]
    fn skip(&mut self, size: usize, name: TensorName) -> Result<(), ViewError> {
        // `size` bytes are there, so rounding up cannot overflow.
        let (tensor, rest) =
            self.rest.split_at_checked(size.div_ceil(LINE) * LINE).ok_or_else(|| beyond(name))?;
        self.rest = rest;
        match (tensor.last_chunk(), size % LINE) {
            (Some(last), used @ 1..) if !ends_in_zeros(last, used) => Err(dirty(name)),
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn finish(&self, length: usize) -> Result<(), ViewError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(ViewError::Length { expected: (length - self.rest.len()) as u64, found: length as u64 })
    }
}

#[cold]
fn beyond(tensor: TensorName) -> ViewError {
    ViewError::Tensor { tensor }
}

#[cold]
fn dirty(tensor: TensorName) -> ViewError {
    ViewError::Padding { tensor }
}

/// Whether a line is zero after its first `used` bytes.
#[inline]
fn ends_in_zeros(line: &[u8; LINE], used: usize) -> bool {
    const MASK: [u8; 2 * LINE] = {
        let mut mask = [0; 2 * LINE];
        let mut index = LINE;
        while index < mask.len() {
            mask[index] = 0xff;
            index += 1;
        }
        mask
    };
    // A masked line rather than a loop over a varying number of bytes: it compiles to a few vector instructions.
    let mask = &MASK[LINE - used.min(LINE)..][..LINE];
    line.iter().zip(mask).fold(0, |all, (byte, mask)| all | byte & mask) == 0
}

/// Why there is no prefix.
#[cold]
fn unreadable(bytes: &[u8], layout: &Layout) -> ViewError {
    if bytes.as_ptr().addr().is_multiple_of(align_of::<Header>()) {
        ViewError::Length { expected: layout.prefix_size() as u64, found: bytes.len() as u64 }
    } else {
        ViewError::Misaligned
    }
}
