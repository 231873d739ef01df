//! Rounds: memory that peers cannot reach passes through slots of the boards, a piece at a time.
//!
//! Rounds are counted over the life of the group; round `t` uses slot `t % SLOTS`. A slot is staged again only when
//! everyone who reads it has said that it is done with the round before, or has begun a later call.

use super::board::{Boards, Counter, Payload, SLOT, SLOTS};
use super::condition::Of;
use super::{Environment, Failure, Group, Memory, Share};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use gradwire_transport::RegionKey;
use std::ops::Range;

/// Bytes up to which a call is one round.
const ONE_ROUND: usize = 16 << 10;
/// Bytes of a round in long calls: staging and consuming overlap, and both stay in the second-level cache.
const LONG_ROUND: usize = 64 << 10;
const _: () = assert!(LONG_ROUND <= SLOT);
/// Bytes up to which memory goes through the boards, whether peers can reach it or not.
pub(super) const NEVER_SHARED: usize = 256;
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
    /// All whose memory matters said that it is shared.
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
    /// Begins a call on memory that is too long for a line: stages the first round unless the memory is shared, then
    /// exchanges.
    pub(super) fn open<E: Environment>(
        &mut self,
        call: &CallSignature,
        share: Option<&Share>,
        flow: &Flow,
        stage: &mut impl FnMut(usize, Span),
        environment: &mut E,
    ) -> Result<Opening, Failure<E::Error>> {
        let stages = flow.stagers.includes(self.boards.rank());
        let has_staged = stages && share.is_none() && flow.rounds > 0;
        if has_staged {
            self.stage(0, Of::All, stage, environment)?;
        }
        self.exchange(call, &share.map_or_else(|| Payload::of_words(&[0]), encode), environment)?;
        let shares = |rank: Rank| self.share_of(rank).is_some();
        let mut stagers = (0..self.boards.size()).filter(|rank| flow.stagers.includes(*rank));
        Ok(Opening {
            has_staged,
            have_all_staged: !stagers.clone().any(shares),
            is_shared: stagers.all(shares),
        })
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

    /// What a rank said of its memory, on the line of the last exchange.
    pub(super) fn share_of(&self, rank: Rank) -> Option<Share> {
        decode(&self.boards.all()[rank].payload(self.exchanges, size_of::<Words>()))
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
            let span = if rank == self.boards.rank() { own } else { self.map(rank, own.len(), environment)? };
            spans.push(span);
        }
        Ok(())
    }

    /// `len` bytes of a rank's shared memory.
    pub(super) fn map<E: Environment>(
        &mut self,
        rank: Rank,
        len: usize,
        environment: &mut E,
    ) -> Result<Span, Failure<E::Error>> {
        let share = self.share_of(rank).ok_or(Failure::Corrupt(rank, "a line that changed"))?;
        self.imports.span(rank, &share, len, environment)
    }

    /// How peers reach the memory, where that pays: below, one round costs less than two exchanges. The same on all
    /// ranks, for it depends on what they have agreed on.
    pub(super) fn share<'a>(&self, memory: &'a Memory) -> Option<&'a Share> {
        let worth = if self.boards.size() == 2 { NEVER_SHARED } else { 8 * NEVER_SHARED };
        memory.share.as_ref().filter(|_| memory.span.len() > worth)
    }
}

/// What a line says of shared memory: `1`, the offset, the key. Of other memory it says `0`.
type Words = [u64; 2 + RegionKey::LEN / size_of::<u64>()];

fn encode(share: &Share) -> Payload {
    let mut words: Words = [1, share.offset as u64, 0, 0, 0, 0];
    for (word, bytes) in words[2..].iter_mut().zip(share.key.as_bytes().as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    Payload::of_words(&words)
}

fn decode(payload: &Payload) -> Option<Share> {
    let [1, offset, key @ ..] = payload.words() else { return None };
    let mut bytes = [0; RegionKey::LEN];
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(key) {
        *bytes = word.to_ne_bytes();
    }
    Some(Share { key: RegionKey::from_bytes(bytes), offset: usize::try_from(*offset).ok()? })
}
