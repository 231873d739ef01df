//! Rounds: memory that peers cannot reach passes through slots of the boards, a piece at a time.
//!
//! Rounds are counted over the life of the group; round `t` uses slot `t % SLOTS`. A slot is staged again only when
//! everyone who reads it has said that it is done with the round before, or has begun a later call.

use super::board::{Boards, Counter, SLOT, SLOTS};
use super::choice::Way;
use super::condition::Of;
use super::shown::Shown;
use super::{Environment, Failure, Group};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use std::ops::Range;

/// Bytes up to which a call is one round.
const ONE_ROUND: usize = 16 << 10;
/// Bytes of a round in long calls: staging and consuming overlap, and both stay in the second-level cache.
const LONG_ROUND: usize = 64 << 10;
const _: () = assert!(LONG_ROUND <= SLOT);
/// Rounds staged before the first of them is consumed.
const AHEAD: usize = 2;

/// How `len` elements or bytes are cut into rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    len: usize,
    round: usize,
}

impl Cut {
    /// `count` units of `size` bytes each; a slot holds `per_slot` of the pieces that a round is made of (one, or one for
    /// each rank).
    pub(super) fn new(count: usize, size: usize, per_slot: usize) -> Self {
        let total = count.saturating_mul(size).saturating_mul(per_slot);
        let target = if total <= ONE_ROUND { ONE_ROUND } else { (total / 8).clamp(ONE_ROUND, LONG_ROUND) };
        let bytes = size.saturating_mul(per_slot).max(1);
        Self { len: count, round: (target / bytes).max(1) }
    }

    pub(super) fn rounds(&self) -> usize {
        self.len.div_ceil(self.round)
    }

    /// The units of a round.
    pub(super) fn range(&self, round: usize) -> Range<usize> {
        round * self.round..((round + 1) * self.round).min(self.len)
    }

    /// The most units of any round.
    pub(super) fn longest(&self) -> usize {
        self.round.min(self.len)
    }
}

/// What of a range lies in a block of `len` bytes, which may be shorter than others'.
pub(super) fn clip(range: Range<usize>, len: usize) -> Range<usize> {
    range.start.min(len)..range.end.min(len)
}

/// Who does what in the rounds of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) rounds: usize,
    pub(super) stagers: Of,
    pub(super) consumers: Of,
}

/// How a call began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// We have staged the first round.
    has_staged: bool,
    /// All stagers have: their lines said so.
    have_all_staged: bool,
    /// All whose memory matters said where it lies.
    pub(super) is_shown: bool,
    /// All of it is mapped.
    pub(super) is_shared: bool,
}

impl Opening {
    /// How many rounds we have staged.
    pub(super) fn staged(&self) -> usize {
        usize::from(self.has_staged)
    }

    /// Whether the lines said that everyone has staged the first round.
    pub(super) fn have_all_staged(&self) -> bool {
        self.have_all_staged
    }
}

impl Group {
    /// Begins a call on memory that is too long for a line: stages the first round unless the memory is shown, then
    /// exchanges.
    pub(super) fn open<E: Environment>(
        &mut self,
        call: &CallSignature,
        shown: Shown,
        flow: &Flow,
        stage: &mut impl FnMut(usize, Span),
        environment: &mut E,
    ) -> Result<Opening, Failure<E::Error>> {
        let stages = flow.stagers.includes(self.boards.rank());
        let has_staged = stages && shown == Shown::Nothing && flow.rounds > 0;
        if has_staged {
            self.stage(0, Of::All, stage, environment)?;
        }
        self.exchange(call, &shown.encode(), environment)?;
        self.read_shown();
        let shows = |rank: Rank| self.shown[rank] != Shown::Nothing;
        let shares = |rank: Rank| matches!(self.shown[rank], Shown::Shared(_));
        let mut stagers = (0..self.boards.size()).filter(|rank| flow.stagers.includes(*rank));
        let opening = Opening {
            has_staged,
            have_all_staged: !stagers.clone().any(shows),
            is_shown: stagers.clone().all(shows),
            is_shared: stagers.all(shares),
        };
        let way = if opening.is_shown { Way::Attached } else { Way::Staged };
        self.choices.begin(Some(way).filter(|_| !opening.is_shared));
        Ok(opening)
    }

    /// Moves memory through slots. `stage` fills our slot for a round; `consume` uses the slots of the stagers.
    pub(super) fn flow<E: Environment>(
        &mut self,
        flow: &Flow,
        opening: &Opening,
        stage: &mut impl FnMut(usize, Span),
        consume: &mut impl FnMut(&Boards, u64, usize),
        environment: &mut E,
    ) -> Result<(), Failure<E::Error>> {
        let first = self.rounds;
        let stages = flow.stagers.includes(self.boards.rank());
        let consumes = flow.consumers.includes(self.boards.rank());
        let mut staged = opening.staged();
        for index in 0..flow.rounds {
            while stages && staged < flow.rounds.min(index + AHEAD) {
                self.stage(staged, flow.consumers, stage, environment)?;
                staged += 1;
            }
            if !consumes {
                continue;
            }
            let round = first + index as u64;
            if index > 0 || !opening.have_all_staged {
                self.wait(Counter::Staged, round + 1, flow.stagers, environment)?;
            }
            consume(&self.boards, round, index);
            self.raise(Counter::Consumed, round + 1, index + 1 < flow.rounds, environment);
        }
        self.end_rounds(flow.rounds, environment);
        Ok(())
    }

    /// Counts the rounds of a call, also for those who staged or consumed nothing.
    pub(super) fn end_rounds<E: Environment>(&mut self, rounds: usize, environment: &mut E) {
        self.rounds += rounds as u64;
        self.boards.own().raise(Counter::Staged, self.rounds);
        self.boards.own().raise(Counter::Consumed, self.rounds);
        self.wake_parked(environment);
        self.choices.end();
    }

    /// Stages a round of this call, once its slot is free. `consumers`: who reads the slots in this call.
    pub(super) fn stage<E: Environment>(
        &mut self,
        index: usize,
        consumers: Of,
        stage: &mut impl FnMut(usize, Span),
        environment: &mut E,
    ) -> Result<(), E::Error> {
        let round = self.rounds + index as u64;
        // Of the round that used the slot before, if there was one.
        let freed = (round + 1).saturating_sub(SLOTS);
        if self.consumed < freed {
            // A round of an earlier call may have been consumed by others than this call's consumers.
            let consumers = if freed > self.rounds { consumers } else { Of::All };
            self.wait(Counter::Consumed, freed, consumers, environment)?;
            self.consumed = freed;
        }
        stage(index, self.boards.own().slot(round));
        self.raise(Counter::Staged, round + 1, index > 0, environment);
        Ok(())
    }

    /// Publishes progress; rings for sleepers now if `more` is to come before the end of the call would.
    pub(super) fn raise<E: Environment>(
        &self,
        counter: Counter,
        value: u64,
        more: bool,
        environment: &mut E,
    ) {
        self.boards.own().raise(counter, value);
        if more {
            self.wake_parked(environment);
        }
    }
}
