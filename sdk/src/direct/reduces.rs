//! Reducing to one rank, and to each rank its part.

use super::all_reduce::{bytes_of, first_of, part};
use super::board::{Boards, INLINE, Payload};
use super::condition::Of;
use super::rounds::{Cut, Flow, clip};
use super::{Environment, Failure, Fold, Group, Memory, Places};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use std::num::NonZeroU64;

impl Group {
    /// Reduces the sources of all ranks, element by element, into the destination of `root`: its source, or memory that
    /// does not overlap it. Elsewhere there is no destination.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the destination is untouched.
    pub(crate) fn reduce<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Option<Span>,
        root: Rank,
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let span = source.span;
        let destination = destination.filter(|_| self.boards.rank() == root);
        if span.len() <= INLINE {
            let own = Payload::of_bytes(span);
            self.exchange(call, &own, environment)?;
            if let Some(destination) = destination {
                self.fold_lines(own, self.boards.size(), 0..span.len(), destination, fold);
            }
            return Ok(());
        }
        let cut = Cut::new(span.len() / fold.element_size.max(1), fold.element_size, 1);
        let flow = Flow { rounds: cut.rounds(), stagers: Of::AllBut(root), consumers: Of::Only(root) };
        let piece = |span: Span, round: usize| bytes_of(span, cut.range(round), fold.element_size);
        let mut stage = |round: usize, slot: Span| slot.copy_from(piece(span, round));
        let shown = self.show(call, &source, span, span.len());
        let opening = self.open(call, shown, &flow, &mut stage, environment)?;
        if opening.is_shown && !opening.is_shared {
            if let Some(destination) = destination {
                self.fold_pulled(0..span.len(), span, destination, fold, environment)?;
            }
            return self.end_call(call, environment);
        }
        let ranks = NonZeroU64::new(self.boards.size() as u64);
        let mut spans = std::mem::take(&mut self.spans);
        let result = if opening.is_shared {
            let mapped = match destination {
                Some(destination) => self.map_shared(span, &mut spans, environment).map(|()| {
                    fold.reducer.fold(&spans, destination, ranks);
                }),
                None => Ok(()),
            };
            mapped.and_then(|()| self.end_call(call, environment))
        } else {
            let mut consume = |boards: &Boards, round: u64, index: usize| {
                let Some(destination) = destination else { return };
                let own = piece(span, index);
                spans.clear();
                spans.extend(boards.all().iter().enumerate().map(|(rank, board)| {
                    if rank == root { own } else { first_of(board.slot(round), own.len()) }
                }));
                fold.reducer.fold(&spans, piece(destination, index), ranks);
            };
            self.flow(&flow, &opening, &mut stage, &mut consume, environment)
        };
        self.spans = spans;
        result
    }

    /// Reduces the sources of all ranks, element by element; each rank gets its part. The destination is the own part of
    /// the source, or memory that does not overlap it.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the destination is untouched.
    pub(crate) fn reduce_scatter<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Span,
        parts: &Places<'_>,
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let span = source.span;
        let (rank, size) = (self.boards.rank(), self.boards.size());
        let own = (parts.block)(rank);
        if span.len() <= INLINE {
            let payload = Payload::of_bytes(span);
            self.exchange(call, &payload, environment)?;
            self.fold_lines(payload, size, own, destination, fold);
            return Ok(());
        }
        // A round stages a piece of each part, one behind the other.
        let cut = Cut::new(parts.longest / fold.element_size.max(1), fold.element_size, size);
        let stride = cut.longest() * fold.element_size;
        let flow = Flow { rounds: cut.rounds(), stagers: Of::All, consumers: Of::All };
        let block = |rank: Rank| part(span, (parts.block)(rank));
        let piece = |block: Span, round: usize| {
            let elements = clip(cut.range(round), block.len() / fold.element_size.max(1));
            bytes_of(block, elements, fold.element_size)
        };
        let mut stage = |round: usize, slot: Span| {
            for other in (0..size).filter(|other| *other != rank) {
                part(slot, other * stride..(other + 1) * stride).copy_from(piece(block(other), round));
            }
        };
        let shown = self.show(call, &source, span, span.len());
        let opening = self.open(call, shown, &flow, &mut stage, environment)?;
        if opening.is_shown && !opening.is_shared {
            self.fold_pulled(own, span, destination, fold, environment)?;
            return self.end_call(call, environment);
        }
        let ranks = NonZeroU64::new(size as u64);
        let mut spans = std::mem::take(&mut self.spans);
        let result = if opening.is_shared {
            let mapped = self.map_shared(span, &mut spans, environment).map(|()| {
                spans.iter_mut().for_each(|span| *span = part(*span, own.clone()));
                fold.reducer.fold(&spans, destination, ranks);
            });
            mapped.and_then(|()| self.end_call(call, environment))
        } else {
            let mut consume = |boards: &Boards, round: u64, index: usize| {
                let own = piece(block(rank), index);
                spans.clear();
                spans.extend(boards.all().iter().enumerate().map(|(other, board)| {
                    if other == rank {
                        own
                    } else {
                        part(board.slot(round), rank * stride..rank * stride + own.len())
                    }
                }));
                fold.reducer.fold(&spans, piece(destination, index), ranks);
            };
            self.flow(&flow, &opening, &mut stage, &mut consume, environment)
        };
        self.spans = spans;
        result
    }
}
