//! What a plan is made of.

use crate::Rank;
use std::ops::Range;

/// One thing a rank does with a range of its working vector.
///
/// An executor may open as few receiving steps at a time as it likes, one included, in the order of the plan: no plan
/// gets stuck. Sends must not wait for receiving steps other than those of their `after`.
///
/// A step whose range is empty moves nothing, on both sides alike: it is done as soon as the steps it waits
/// for are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// What is done.
    pub action: Action,
    /// With which elements of the working vector. Sender and receiver name the same range; in all_to_all, where the
    /// index spaces are their own, ranges of the same length.
    pub range: Range<usize>,
    /// Earlier steps of this rank, by index, that this one waits for. Where such a step has the same range, a
    /// segment may follow as soon as the same segment of the other is done; otherwise the whole step is awaited.
    ///
    /// Steps may be carried out in any order that this permits. All conflicts on the working vector are ordered by
    /// it, directly or through other steps.
    pub after: [Option<u32>; 2],
    /// Tells the steps between two ranks apart: in one call, no two sends of one rank to the same other have the
    /// same channel, and the receiver's step names the sender's.
    pub channel: u32,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Sends the range of the working vector: the input where nothing has been written yet. Done when the memory may
    /// be overwritten.
    Send {
        /// The receiver.
        to: Rank,
    },
    /// Overwrites the range with what a rank sends. No byte is written before the steps of `after` are done; a sender
    /// may be made to wait until then.
    Receive {
        /// The sender.
        from: Rank,
    },
    /// Folds the own range and what is received into the range, in rank order. What is received is kept aside
    /// until the steps of `after` are done, and a sender is *not* made to wait for them: two ranks that
    /// exchange both wait for their own sends.
    ReceiveReduce {
        /// Whose data is folded with the own.
        from: Peers,
        /// The range holds the result of all contributions afterwards: the operation's `finish` is applied.
        last: bool,
    },
    /// Applies the operation's `lift` and `finish` to the range: the result of one contribution, or of the exact partial
    /// result that is there.
    Finish,
    /// Overwrites the range with as many elements of the working vector, which do not overlap it.
    Copy {
        /// The first of them.
        from: usize,
    },
}

/// Whose data meet in one fold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peers {
    /// Two operands, contributions or partial results: that of the lower rank first.
    One(Rank),
    /// One contribution of every rank, each sent on the step's channel: from the left in rank order, the own in its
    /// place.
    AllOthers,
    /// One contribution of every lower rank from this one on, each sent on the step's channel: from the left in rank
    /// order, the own last.
    LowerFrom(Rank),
}

impl Step {
    /// A step that waits for nothing, on channel 0.
    const fn new(action: Action, range: Range<usize>) -> Self {
        Self { action, range, after: [None, None], channel: 0 }
    }

    pub(super) const fn send(to: Rank, range: Range<usize>) -> Self {
        Self::new(Action::Send { to }, range)
    }

    pub(super) const fn receive(from: Rank, range: Range<usize>) -> Self {
        Self::new(Action::Receive { from }, range)
    }

    pub(super) const fn fold(from: Rank, last: bool, range: Range<usize>) -> Self {
        Self::new(Action::ReceiveReduce { from: Peers::One(from), last }, range)
    }

    pub(super) const fn fold_all(range: Range<usize>) -> Self {
        Self::new(Action::ReceiveReduce { from: Peers::AllOthers, last: true }, range)
    }

    pub(super) const fn fold_lower(first: Rank, range: Range<usize>) -> Self {
        Self::new(Action::ReceiveReduce { from: Peers::LowerFrom(first), last: true }, range)
    }

    pub(super) const fn copy(from: usize, range: Range<usize>) -> Self {
        Self::new(Action::Copy { from }, range)
    }

    pub(super) const fn finish(range: Range<usize>) -> Self {
        Self::new(Action::Finish, range)
    }

    pub(super) fn channel(self, channel: usize) -> Self {
        Self { channel: index(channel), ..self }
    }

    /// Waits for one more step.
    pub(super) fn after(self, step: usize) -> Self {
        let after = match self.after {
            [None, _] => [Some(index(step)), None],
            [first, _] => [first, Some(index(step))],
        };
        Self { after, ..self }
    }

    /// Waits for one more step if there is one.
    pub(super) fn after_any(self, step: Option<usize>) -> Self {
        match step {
            Some(step) => self.after(step),
            None => self,
        }
    }

    /// As a later part of a plan of more ranks: every rank, index and channel counts from a higher one. What waited for
    /// nothing waits for the step before that part, if there is one.
    pub(super) fn behind(self, ranks: usize, steps: usize, channels: usize) -> Self {
        let action = match self.action {
            Action::Send { to } => Action::Send { to: to + ranks },
            Action::Receive { from } => Action::Receive { from: from + ranks },
            Action::ReceiveReduce { from: Peers::One(from), last } => {
                Action::ReceiveReduce { from: Peers::One(from + ranks), last }
            }
            Action::ReceiveReduce { from: Peers::LowerFrom(first), last } => {
                Action::ReceiveReduce { from: Peers::LowerFrom(first + ranks), last }
            }
            action => action,
        };
        let channel = index(self.channel as usize + channels);
        let moved = Self { action, after: [None, None], channel, ..self };
        if self.after == [None, None] {
            return moved.after_any(steps.checked_sub(1));
        }
        let after = self.after.into_iter().flatten();
        after.fold(moved, |step, other| step.after(other as usize + steps))
    }

    /// Whether the range is written.
    pub(crate) const fn writes(&self) -> bool {
        !matches!(self.action, Action::Send { .. })
    }
}

/// Plans have a few steps per rank: an index never comes near `u32::MAX`.
fn index(step: usize) -> u32 {
    u32::try_from(step).unwrap_or(u32::MAX)
}
