//! Collectives that only copy: broadcast, all_gather, gather.

use super::all_reduce::{first_of, part};
use super::board::{Boards, INLINE, Payload};
use super::condition::Of;
use super::rounds::{Cut, Flow, clip};
use super::shown::Side;
use super::{Environment, Failure, Group, Memory, Places};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;

impl Group {
    /// Overwrites everyone's memory with that of `root`. It has the same length everywhere.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the memory is untouched.
    pub(crate) fn broadcast<E: Environment>(
        &mut self,
        call: &CallSignature,
        memory: Memory,
        root: Rank,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        self.scatter(call, memory, 0..memory.span.len(), root, environment)
    }

    /// Gives everyone the sources of all ranks, each in its place. The source may lie in the destination, in its own place;
    /// else they do not overlap.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the destination is untouched.
    pub(crate) fn all_gather<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Span,
        places: &Places<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        self.collect(call, source, Some(destination), places, Of::All, environment)
    }

    /// Gives `root` the sources of all ranks, each in its place; elsewhere there is no destination.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the destination is untouched.
    pub(crate) fn gather<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Option<Span>,
        places: &Places<'_>,
        root: Rank,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let destination = destination.filter(|_| self.boards.rank() == root);
        self.collect(call, source, destination, places, Of::Only(root), environment)
    }

    fn collect<E: Environment>(
        &mut self,
        call: &CallSignature,
        source: Memory,
        destination: Option<Span>,
        places: &Places<'_>,
        consumers: Of,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let span = source.span;
        let rank = self.boards.rank();
        let block = |destination: Span, rank: Rank| part(destination, (places.block)(rank));
        if places.longest <= INLINE {
            self.exchange(call, &Payload::of_bytes(span), environment)?;
            if let Some(destination) = destination {
                for (rank, board) in self.boards.all().iter().enumerate() {
                    let block = block(destination, rank);
                    block.copy_from(board.payload(self.exchanges, block.len()).span());
                }
            }
            return Ok(());
        }
        // Where only one collects, it need not stage for itself.
        let stagers = if let Of::Only(root) = consumers { Of::AllBut(root) } else { Of::All };
        let cut = Cut::new(places.longest, 1, 1);
        let flow = Flow { rounds: cut.rounds(), stagers, consumers };
        let mut stage =
            |round: usize, slot: Span| slot.copy_from(part(span, clip(cut.range(round), span.len())));
        let shown = self.show(call, &source, span, places.longest);
        let opening = self.open(call, shown, &flow, &mut stage, environment)?;
        if let Some(destination) = destination {
            block(destination, rank).copy_from(span);
        }
        if opening.is_shown {
            if let Some(destination) = destination {
                for other in (0..self.boards.size()).filter(|other| *other != rank) {
                    let block = block(destination, other);
                    self.pull((other, Side::Source), 0..block.len(), block, environment)?;
                }
            }
            return self.end_call(call, environment);
        }
        let mut consume = |boards: &Boards, round: u64, index: usize| {
            let Some(destination) = destination else { return };
            for (other, board) in boards.others() {
                let block = block(destination, other);
                let piece = part(block, clip(cut.range(index), block.len()));
                piece.copy_from(first_of(board.slot(round), piece.len()));
            }
        };
        self.flow(&flow, &opening, &mut stage, &mut consume, environment)
    }
}
