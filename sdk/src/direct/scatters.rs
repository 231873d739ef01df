//! Giving each rank its block: from one rank, or from all.

use super::all_reduce::{first_of, part};
use super::board::{Boards, INLINE, Payload};
use super::condition::Of;
use super::rounds::{Cut, Flow, clip};
use super::shown::{Shown, Side};
use super::{Environment, Failure, Group, Memory, Pairs};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use std::ops::Range;

impl Group {
    /// Overwrites a part of everyone's memory with that of `root`: each rank its own, which may be all of it. The memory has the same length
    /// everywhere, and is used at the root as a whole.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the memory is untouched.
    pub(crate) fn scatter<E: Environment>(
        &mut self,
        call: &CallSignature,
        memory: Memory,
        own: Range<usize>,
        root: Rank,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let span = memory.span;
        let is_root = self.boards.rank() == root;
        if span.len() <= INLINE {
            let payload = if is_root { Payload::of_bytes(span) } else { Payload::default() };
            self.exchange(call, &payload, environment)?;
            if !is_root {
                let mut payload = self.boards.all()[root].payload(self.exchanges, own.end);
                part(span, own.clone()).copy_from(part(payload.span(), own));
            }
            return Ok(());
        }
        let cut = Cut::new(span.len(), 1, 1);
        let flow = Flow { rounds: cut.rounds(), stagers: Of::Only(root), consumers: Of::AllBut(root) };
        let mut stage = |round: usize, slot: Span| slot.copy_from(part(span, cut.range(round)));
        let shown = self.show(call, &memory, span, span.len());
        let shown = if is_root { shown } else { Shown::Nothing };
        let opening = self.open(call, shown, &flow, &mut stage, environment)?;
        if opening.is_shown {
            if !is_root {
                self.pull((root, Side::Source), own.clone(), part(span, own), environment)?;
            }
            return self.end_call(call, environment);
        }
        let mut consume = |boards: &Boards, round: u64, index: usize| {
            let staged = cut.range(index);
            let wanted = own.start.max(staged.start)..own.end.min(staged.end);
            if !wanted.is_empty() {
                let slot = boards.slot(root, round);
                let place = wanted.start - staged.start..wanted.end - staged.start;
                part(span, wanted).copy_from(part(slot, place));
            }
        };
        self.flow(&flow, &opening, &mut stage, &mut consume, environment)
    }

    /// Gives every rank the block that each rank has for it.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the destination is untouched.
    pub(crate) fn all_to_all<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Span,
        pairs: &Pairs<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let Pairs { sent, received, longest } = *pairs;
        let (rank, size) = (self.boards.rank(), self.boards.size());
        let place = |from: Rank| part(destination, received(from));
        if longest.saturating_mul(size) <= INLINE {
            self.exchange(call, &Payload::of_bytes(source.span), environment)?;
            for (from, board) in self.boards.all().iter().enumerate() {
                let sent = sent(from, rank);
                let mut payload = board.payload(self.exchanges, sent.end);
                place(from).copy_from(part(payload.span(), sent));
            }
            return Ok(());
        }
        // A round stages a piece for each rank, one behind the other.
        let cut = Cut::new(longest, 1, size);
        let stride = cut.longest();
        let flow = Flow { rounds: cut.rounds(), stagers: Of::All, consumers: Of::All };
        let piece = |block: Span, round: usize| part(block, clip(cut.range(round), block.len()));
        let mut stage = |round: usize, slot: Span| {
            for to in (0..size).filter(|to| *to != rank) {
                let piece = piece(part(source.span, sent(rank, to)), round);
                part(slot, to * stride..to * stride + piece.len()).copy_from(piece);
            }
        };
        let shown = self.show(call, &source, source.span, longest.saturating_mul(size));
        let opening = self.open(call, shown, &flow, &mut stage, environment)?;
        place(rank).copy_from(part(source.span, sent(rank, rank)));
        if opening.is_shown {
            for from in (0..size).filter(|from| *from != rank) {
                self.pull((from, Side::Source), sent(from, rank), place(from), environment)?;
            }
            return self.end_call(call, environment);
        }
        let mut consume = |boards: &Boards, round: u64, index: usize| {
            for (from, board) in boards.others() {
                let piece = piece(place(from), index);
                let slot = part(board.slot(round), rank * stride..(rank + 1) * stride);
                piece.copy_from(first_of(slot, piece.len()));
            }
        };
        self.flow(&flow, &opening, &mut stage, &mut consume, environment)
    }
}
