//! Prefix reductions.

use super::all_reduce::{bytes_of, first_of};
use super::board::{Boards, INLINE, Payload};
use super::condition::Of;
use super::rounds::{Cut, Flow};
use super::shown::Shown;
use super::{Environment, Failure, Fold, Group};
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use std::num::NonZeroU64;

impl Group {
    /// Reduces the memory of the first `ranks` ranks, element by element, in place: the ranks up to this one, or those
    /// before it. With none of them the memory is left as it is.
    ///
    /// Even memory that peers could reach is staged: results go where they would still read.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After `Mismatch` the memory is untouched.
    pub(crate) fn scan<E: Environment>(
        &mut self,
        call: &CallSignature,
        span: Span,
        ranks: usize,
        fold: Fold<'_>,
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let contributions = NonZeroU64::new(ranks as u64);
        if span.len() <= INLINE {
            let own = Payload::of_bytes(span);
            self.exchange(call, &own, environment)?;
            if contributions.is_some() {
                self.fold_lines(own, ranks, 0..span.len(), span, fold);
            }
            return Ok(());
        }
        let cut = Cut::new(span.len() / fold.element_size.max(1), fold.element_size, 1);
        let flow = Flow { rounds: cut.rounds(), stagers: Of::All, consumers: Of::All };
        let piece = |round: usize| bytes_of(span, cut.range(round), fold.element_size);
        let mut stage = |round: usize, slot: Span| slot.copy_from(piece(round));
        let opening = self.open(call, Shown::Nothing, &flow, &mut stage, environment)?;
        let mut spans = std::mem::take(&mut self.spans);
        let mut consume = |boards: &Boards, round: u64, index: usize| {
            // The own piece has been staged before, too.
            let own = piece(index);
            spans.clear();
            let staged = boards.all().iter().take(ranks);
            spans.extend(staged.map(|board| first_of(board.slot(round), own.len())));
            if contributions.is_some() {
                fold.reducer.fold(&spans, own, contributions);
            }
        };
        let result = self.flow(&flow, &opening, &mut stage, &mut consume, environment);
        self.spans = spans;
        result
    }
}
