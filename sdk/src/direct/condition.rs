//! What a rank waits for.

use super::board::{Boards, Counter};
use crate::Rank;
use std::sync::atomic::{Ordering, fence};

/// Which ranks are waited for. This rank itself never is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    All,
    Only(Rank),
    AllBut(Rank),
}

impl Of {
    pub(super) fn includes(self, rank: Rank) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => rank == only,
            Self::AllBut(but) => rank != but,
        }
    }
}

/// Some ranks' counters must have come so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(super) boards: &'a Boards,
    pub(super) counter: Counter,
    pub(super) value: u64,
    pub(super) of: Of,
    /// This begins a call: nothing of it has happened yet.
    pub(super) begins: bool,
}

impl Condition<'_> {
    /// Whether this begins a call, which may still be made elsewhere.
    pub(crate) fn begins(&self) -> bool {
        self.begins
    }

    /// Whether there is nothing left to wait for.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.late().next().is_none()
    }

    /// The ranks that hold the group up. In the middle of a call those are not all that have not come so far, for some of
    /// them only wait for another: it is those that have come least far.
    pub(crate) fn missing(&self) -> Vec<Rank> {
        let late: Vec<Rank> = self.late().collect();
        if self.counter == Counter::Line {
            return late;
        }
        let advance = |rank: Rank| self.boards.all()[rank].advance();
        let least = late.iter().map(|rank| advance(*rank)).min();
        late.into_iter().filter(|rank| Some(advance(*rank)) == least).collect()
    }

    /// The ranks of which none may have left for good. A call that somebody has not come to yet cannot have ended for
    /// anybody: then those are all others.
    pub(crate) fn needed(&self) -> Vec<Rank> {
        let late: Vec<Rank> = self.late().collect();
        if self.counter == Counter::Line && !late.is_empty() {
            return self.boards.others().map(|(rank, _)| rank).collect();
        }
        late
    }

    /// Announces that this rank goes to sleep until its bell rings. `false`: do not, it is ready. In either case
    /// [`unpark`](Self::unpark) must follow.
    #[must_use]
    pub(crate) fn park(&self) -> bool {
        self.boards.own().set_parked(true);
        // Pairs with the fence in `Boards::parked`: either we see what was published, or the publisher our flag.
        fence(Ordering::SeqCst);
        !self.is_ready()
    }

    /// Takes `park` back.
    pub(crate) fn unpark(&self) {
        self.boards.own().set_parked(false);
    }

    fn late(&self) -> impl Iterator<Item = Rank> {
        self.boards
            .others()
            .filter(|(rank, board)| self.of.includes(*rank) && !board.has_reached(self.counter, self.value))
            .map(|(rank, _)| rank)
    }
}
