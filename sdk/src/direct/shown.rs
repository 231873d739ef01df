//! Memory that peers reach where it lies: shared, or read by the system.

use super::all_reduce::part;
use super::board::{Counter, Payload, SLOT};
use super::choice::Way;
use super::condition::Of;
use super::{Environment, Failure, Fold, Group, Memory, Share};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use gradwire_transport::RegionKey;
use std::num::NonZeroU64;
use std::ops::Range;

/// Bytes up to which memory goes through the boards, whether peers can reach it or not.
pub(super) const NEVER_SHARED: usize = 256;
/// Bytes from which private memory may be read by the system: below, a system call is not worth its price.
pub(super) const ATTACHED_FROM: usize = 128 << 10;
/// Bytes of each rank that are read before they are folded: they stay in the second-level cache.
const PIECE: usize = SLOT;

/// What a rank says of its memory, on its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown {
    /// It passes through slots.
    Nothing,
    /// Peers map it.
    Shared(Share),
    /// Peers read it: where the source lies, and where the result will.
    Attached { source: u64, result: u64 },
}

/// The longest form: what it is, the offset, the key.
const WORDS: usize = 2 + RegionKey::LEN / size_of::<u64>();
const NOTHING: u64 = 0;
const SHARED: u64 = 1;
const ATTACHED: u64 = 2;

impl Shown {
    pub(super) fn encode(&self) -> Payload {
        match self {
            Self::Nothing => Payload::of_words(&[NOTHING]),
            Self::Shared(share) => {
                let mut words = [0; WORDS];
                words[..2].copy_from_slice(&[SHARED, share.offset as u64]);
                for (word, bytes) in words[2..].iter_mut().zip(share.key.as_bytes().as_chunks().0) {
                    *word = u64::from_ne_bytes(*bytes);
                }
                Payload::of_words(&words)
            }
            Self::Attached { source, result } => Payload::of_words(&[ATTACHED, *source, *result]),
        }
    }

    fn decode(words: &[u64]) -> Self {
        match *words {
            [SHARED, offset, ref key @ ..] => {
                let mut bytes = [0; RegionKey::LEN];
                for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(key) {
                    *bytes = word.to_ne_bytes();
                }
                // An offset beyond what an address can be leaves every region, and is found to.
                let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                Self::Shared(Share { key: RegionKey::from_bytes(bytes), offset })
            }
            [ATTACHED, source, result, ..] => Self::Attached { source, result },
            _ => Self::Nothing,
        }
    }
}

/// Which memory of a rank is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Source,
    Result,
}

impl Group {
    /// What to say of the memory of a call in which the longest vector of any rank has `longest` bytes. On which that depends
    /// all ranks have agreed, but for whether memory can be shared.
    pub(super) fn show(
        &mut self,
        call: &CallSignature,
        memory: &Memory,
        result: Span,
        longest: usize,
    ) -> Shown {
        let can_attach = self.attached.is_some() && longest >= self.attached_from;
        let way = self.choices.choose(can_attach.then(|| (call.collective, longest.ilog2())));
        let worth = if self.boards.size() == 2 { NEVER_SHARED } else { 8 * NEVER_SHARED };
        match memory.share.filter(|_| longest > worth) {
            Some(share) => Shown::Shared(share),
            None if way == Way::Attached => {
                let address = |span: Span| span.address().as_ptr().addr() as u64;
                Shown::Attached { source: address(memory.span), result: address(result) }
            }
            None => Shown::Nothing,
        }
    }

    /// Reads the lines of an exchange that began a call.
    pub(super) fn read_shown(&mut self) {
        let (lines, len) = (self.boards.all().iter(), WORDS * size_of::<u64>());
        self.shown.clear();
        self.shown.extend(lines.map(|board| Shown::decode(board.payload(self.exchanges, len).words())));
    }

    /// Fills `spans` with `len` bytes of each rank's shared memory.
    pub(super) fn map_shared<E: Environment>(
        &mut self,
        own: Span,
        spans: &mut Vec<Span>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        spans.clear();
        for rank in 0..self.boards.size() {
            let span = match self.shown[rank] {
                _ if rank == self.boards.rank() => own,
                Shown::Shared(share) => self.imports.span(rank, &share, own.len(), environment)?,
                _ => return Err(Failure::Corrupt(rank, "a line that changed")),
            };
            spans.push(span);
        }
        Ok(())
    }

    /// Copies a range of another rank's memory to `destination`, which is as long.
    pub(super) fn pull<E: Environment>(
        &mut self,
        (rank, side): (Rank, Side),
        range: Range<usize>,
        destination: Span,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        match (self.shown[rank], &self.attached) {
            (Shown::Shared(share), _) => {
                let all = self.imports.span(rank, &share, range.end, environment)?;
                destination.copy_from(part(all, range));
                Ok(())
            }
            (Shown::Attached { source, result }, Some(attached)) => {
                let memory = if side == Side::Source { source } else { result };
                if attached.read(rank, memory.wrapping_add(range.start as u64), destination) {
                    return Ok(());
                }
                self.explain_unreadable(rank, environment)
            }
            _ => Err(Failure::Corrupt(rank, "memory that was not shown")),
        }
    }

    /// A rank whose memory is gone has died, or given the call up: the environment knows, or will. One that is there and goes
    /// on with the call hides its memory.
    #[cold]
    fn explain_unreadable<E: Environment>(
        &self,
        rank: Rank,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        self.wait(Counter::Line, self.exchanges + 1, Of::Only(rank), environment)?;
        Err(Failure::Corrupt(rank, "memory that the system no longer lets others read"))
    }

    /// Folds a range of all ranks' sources, in bytes, into `destination`, which is as long.
    pub(super) fn fold_pulled<E: Environment>(
        &mut self,
        range: Range<usize>,
        own: Span,
        destination: Span,
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let (rank, size) = (self.boards.rank(), self.boards.size());
        let step = (PIECE / fold.element_size.max(1)).max(1) * fold.element_size.max(1);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(size * step.div_ceil(size_of::<u64>()), 0);
        // SAFETY: the vector is not used otherwise until the span has been, at the end of this function.
        let all = unsafe { Span::of_slice(&mut scratch) };
        let pieces = all.len() / size;
        let mut spans = std::mem::take(&mut self.spans);
        for start in range.clone().step_by(step) {
            let piece = start..(start + step).min(range.end);
            spans.clear();
            for other in 0..size {
                if other == rank {
                    spans.push(part(own, piece.clone()));
                    continue;
                }
                let into = part(all, other * pieces..other * pieces + piece.len());
                self.pull((other, Side::Source), piece.clone(), into, environment)?;
                spans.push(into);
            }
            let result = part(destination, piece.start - range.start..piece.end - range.start);
            fold.reducer.fold(&spans, result, NonZeroU64::new(size as u64));
        }
        self.spans = spans;
        self.scratch = scratch;
        Ok(())
    }
}
