//! Reducing into the memory of all ranks.

use super::board::{Boards, Counter, INLINE, Payload, SLOT};
use super::condition::Of;
use super::rounds::{Cut, Flow, Opening};
use super::shown::Side;
use super::{Environment, Failure, Fold, Group, Memory};
use crate::Rank;
use crate::buffer::Span;
use crate::partition::partition_aligned;
use gradwire_schema::CallSignature;
use std::num::NonZeroU64;
use std::ops::Range;

/// Bytes that all ranks together may read while every rank reduces everything; beyond it each reduces its part.
const EVERYTHING: usize = 64 << 10;
/// Parts are cut at multiples of so many bytes, so that two ranks do not write to one pair of cache lines.
const ALIGNED: usize = 128;

impl Group {
    /// Reduces the sources of all ranks, element by element, into everyone's destination: the source itself, or memory that
    /// does not overlap it. Sources have a whole number of elements, and both the same length.
    ///
    /// Where every rank shares its source, the source is also the destination.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the destination is untouched.
    pub(crate) fn all_reduce<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Span,
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let Memory { span: source_span, .. } = source;
        if source_span.len() <= INLINE {
            let own = Payload::of_bytes(source_span);
            self.exchange(call, &own, environment)?;
            self.fold_lines(own, self.boards.size(), 0..source_span.len(), destination, fold);
            return Ok(());
        }
        let everything = self.boards.size() == 2 || source_span.len() * self.boards.size() <= EVERYTHING;
        let count = source_span.len() / fold.element_size.max(1);
        let cut = Cut::new(count, fold.element_size, 1);
        let flow = Flow { rounds: cut.rounds(), stagers: Of::All, consumers: Of::All };
        let part = |span: Span, round: usize| bytes_of(span, cut.range(round), fold.element_size);
        let mut stage = |round: usize, slot: Span| slot.copy_from(part(source_span, round));
        // What is reduced somewhere else than it came from cannot be pushed into.
        let in_place = source_span.address() == destination.address();
        let memory = Memory { share: source.share.filter(|_| in_place), ..source };
        let shown = self.show(call, &memory, destination, source_span.len());
        let opening = self.open(call, shown, &flow, &mut stage, environment)?;
        if opening.is_shared {
            return self.push(call, source_span, fold, environment);
        }
        if opening.is_shown {
            return self.pull_parts(call, [source_span, destination], fold, environment);
        }
        if !everything {
            return self.push_in_rounds(&cut, [source_span, destination], fold, &opening, environment);
        }
        let mut spans = std::mem::take(&mut self.spans);
        let ranks = NonZeroU64::new(self.boards.size() as u64);
        let mut consume = |boards: &Boards, round: u64, index: usize| {
            let own = part(source_span, index);
            spans.clear();
            spans.extend(boards.all().iter().enumerate().map(|(rank, board)| {
                if rank == boards.rank() { own } else { first_of(board.slot(round), own.len()) }
            }));
            fold.reducer.fold(&spans, part(destination, index), ranks);
        };
        let result = self.flow(&flow, &opening, &mut stage, &mut consume, environment);
        self.spans = spans;
        result
    }

    /// Folds part `range` of the payloads of the first ranks' lines. `own`: that of this rank, whose line may lie in a
    /// reader's cache by now.
    pub(super) fn fold_lines(
        &mut self,
        mut own: Payload,
        ranks: usize,
        range: Range<usize>,
        destination: Span,
        fold: Fold<'_>,
    ) {
        self.spans.clear();
        for (rank, payload) in self.lines.iter_mut().enumerate().take(ranks) {
            let payload = if rank == self.boards.rank() {
                &mut own
            } else {
                self.boards.all()[rank].read_payload(self.exchanges, range.end, payload);
                payload
            };
            self.spans.push(part(payload.span(), range.clone()));
        }
        fold.reducer.fold(&self.spans, destination, NonZeroU64::new(self.spans.len() as u64));
    }

    /// Reduces our part of everyone's memory where it lies, into everyone's memory.
    fn push<E: Environment>(
        &mut self,
        call: &CallSignature,
        own: Span,
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let mut spans = std::mem::take(&mut self.spans);
        self.map_shared(own, &mut spans, environment)?;
        push_part(&self.boards, &mut spans, own.len(), fold);
        self.spans = spans;
        // Nobody leaves before all parts of its memory are written, and nobody else's are read.
        self.end_call(call, environment)
    }

    /// Reduces our part of everyone's memory into our own, then takes the other parts from those who have reduced them.
    fn pull_parts<E: Environment>(
        &mut self,
        call: &CallSignature,
        [source, destination]: [Span; 2],
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let (rank, size, len) = (self.boards.rank(), self.boards.size(), source.len());
        let part_of = |rank: Rank| part_of(len, size, rank, fold);
        let own = part_of(rank);
        self.fold_pulled(own.clone(), source, part(destination, own), fold, environment)?;
        // Nobody overwrites what others still have to read, nor reads what is not reduced.
        self.meet_again(call, environment)?;
        for other in (1..size).map(|step| (rank + step) % size) {
            let range = part_of(other);
            self.pull((other, Side::Result), range.clone(), part(destination, range), environment)?;
        }
        self.end_call(call, environment)
    }

    /// The same inside the slots, round by round.
    fn push_in_rounds<E: Environment>(
        &mut self,
        cut: &Cut,
        [source, destination]: [Span; 2],
        fold: Fold<'_>,
        opening: &Opening,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let part = |span: Span, round: usize| bytes_of(span, cut.range(round), fold.element_size);
        let mut stage = |round: usize, slot: Span| slot.copy_from(part(source, round));
        let mut spans = std::mem::take(&mut self.spans);
        let first = self.rounds;
        let rounds = cut.rounds();
        let mut staged = opening.staged();
        for index in 0..rounds {
            // One more than is needed now, so that others find it when they are done with this one.
            while staged < rounds.min(index + 2) {
                self.stage(staged, Of::All, &mut stage, environment)?;
                staged += 1;
            }
            let round = first + index as u64;
            if index > 0 || !opening.have_all_staged() {
                self.wait(Counter::Staged, round + 1, Of::All, environment)?;
            }
            let len = cut.range(index).len() * fold.element_size;
            spans.clear();
            spans.extend(self.boards.all().iter().map(|board| first_of(board.slot(round), len)));
            push_part(&self.boards, &mut spans, len, fold);
            self.raise(Counter::Consumed, round + 1, true, environment);
            self.wait(Counter::Consumed, round + 1, Of::All, environment)?;
            self.consumed = round + 1;
            part(destination, index).copy_from(self.boards.own().slot(round));
        }
        self.spans = spans;
        self.end_rounds(rounds, environment);
        Ok(())
    }
}

/// Folds our part of `spans`, each of `len` bytes, into all of them.
fn push_part(boards: &Boards, spans: &mut [Span], len: usize, fold: Fold<'_>) {
    let own = part_of(len, boards.size(), boards.rank(), fold);
    spans.iter_mut().for_each(|span| *span = part(*span, own.clone()));
    fold.reducer.fold_to_all(spans, spans, NonZeroU64::new(boards.size() as u64));
}

/// The bytes that a rank reduces for all.
fn part_of(len: usize, size: usize, rank: Rank, fold: Fold<'_>) -> Range<usize> {
    let unit = (ALIGNED / fold.element_size.max(1)).max(1);
    let elements = partition_aligned(len / fold.element_size.max(1), size, rank, unit);
    elements.start * fold.element_size..elements.end * fold.element_size
}

/// A range that lies inside. (A slot holds the longest round; rounds, ranks and counts agree on all ranks.)
pub(super) fn part(span: Span, range: Range<usize>) -> Span {
    debug_assert!(range.end <= span.len(), "{range:?} of {} bytes", span.len());
    span.part(range).unwrap_or(Span::EMPTY)
}

pub(super) fn first_of(span: Span, len: usize) -> Span {
    part(span, 0..len)
}

/// A range of elements.
pub(super) fn bytes_of(span: Span, range: Range<usize>, element_size: usize) -> Span {
    part(span, range.start * element_size..range.end * element_size)
}

const _: () = assert!(EVERYTHING / 2 <= SLOT);
