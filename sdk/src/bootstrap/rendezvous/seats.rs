//! Who sits where: one seat per rank, pure bookkeeping.
#![forbid(unsafe_code)]

use super::frame::Join;
use crate::Rank;
use crate::error::Ranks;
use std::time::{Duration, Instant};

/// How long a rank whose connection broke may take to come back.
pub(super) const RETURN: Duration = Duration::from_secs(1);

/// A seat for each rank of the job.
#[derive(Debug)]
pub(super) struct Seats {
    seats: Vec<Option<Occupant>>,
    /// Which ranks have been seen at all.
    seen: Vec<bool>,
    refused: usize,
}

/// A process that has taken its seat.
#[derive(Debug)]
pub(super) struct Occupant {
    instance: [u8; 16],
    /// Host and process number, for messages.
    pub(super) who: String,
    /// Its part of what the welcome proves.
    pub(super) nonce: [u8; 32],
    deadline: Instant,
    left: Option<Instant>,
}

impl Seats {
    pub(super) fn new(size: usize) -> Self {
        Self {
            seats: std::iter::repeat_with(|| None).take(size).collect(),
            seen: vec![false; size],
            refused: 0,
        }
    }

    pub(super) fn size(&self) -> usize {
        self.seats.len()
    }

    /// Gives a process the seat it asks for. An error is one of the job and concerns all ranks.
    ///
    /// The same process may come again, when its connection broke.
    pub(super) fn take(&mut self, join: &Join, now: Instant) -> Result<Rank, String> {
        let (expected, rank, size) = (self.size(), index(join.rank.get()), index(join.size.get()));
        let who = join.who();
        if size != expected || rank >= expected {
            return Err(format!(
                "the job has {expected} ranks, but {who} says that it is rank {rank} of {size}"
            ));
        }
        if let Some(other) = &self.seats[rank]
            && other.instance != join.instance
        {
            return Err(format!("two processes say that they are rank {rank}: {} and {who}", other.who));
        }
        let deadline = now + before(Duration::from_millis(join.timeout_ms.get().into()));
        self.seats[rank] =
            Some(Occupant { instance: join.instance, who, nonce: join.nonce, deadline, left: None });
        Ok(rank)
    }

    /// Notes that this rank has come, whatever becomes of it.
    pub(super) fn see(&mut self, join: &Join) {
        if let Some(seen) = self.seen.get_mut(index(join.rank.get())) {
            *seen = true;
        }
    }

    /// Notes that somebody did not know the secret.
    pub(super) fn refuse(&mut self) {
        self.refused += 1;
    }

    /// The connection of a rank broke.
    pub(super) fn leave(&mut self, rank: Rank, now: Instant) {
        if let Some(occupant) = &mut self.seats[rank] {
            occupant.left = Some(now);
        }
    }

    /// Why the start has to end now, if it has to.
    pub(super) fn expired(&self, now: Instant) -> Option<String> {
        for (rank, occupant) in self.occupants() {
            if occupant.left.is_some_and(|left| left + RETURN <= now) {
                return Some(format!("rank {rank} ({}) ended before all ranks were there", occupant.who));
            }
            if occupant.deadline <= now {
                return Some(self.missing());
            }
        }
        None
    }

    fn missing(&self) -> String {
        let missing: Vec<Rank> = (0..self.size()).filter(|&rank| self.seats[rank].is_none()).collect();
        let mut reason = format!("{} of {} did not come in time", Ranks(&missing), self.size());
        if self.refused > 0 {
            reason += &format!("; {} attempts with another secret were refused", self.refused);
        }
        reason
    }

    /// When [`Seats::expired`] may next have something to say.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.occupants()
            .map(|(_, occupant)| occupant.left.map_or(occupant.deadline, |left| left + RETURN))
            .min()
    }

    fn occupants(&self) -> impl Iterator<Item = (Rank, &Occupant)> {
        self.seats.iter().enumerate().filter_map(|(rank, seat)| Some((rank, seat.as_ref()?)))
    }

    /// Whether all ranks sit.
    pub(super) fn is_complete(&self) -> bool {
        self.seats.iter().all(|seat| seat.as_ref().is_some_and(|occupant| occupant.left.is_none()))
    }

    /// Whether every rank has come at least once.
    pub(super) fn has_seen_all(&self) -> bool {
        self.seen.iter().all(|&seen| seen)
    }

    /// The occupants in the order of their ranks; all of them, when the seats are complete.
    pub(super) fn into_occupants(self) -> impl Iterator<Item = Occupant> {
        self.seats.into_iter().flatten()
    }
}

/// A little less than a rank is prepared to wait, so that it hears the reason before it gives up.
pub(super) fn before(timeout: Duration) -> Duration {
    timeout - (timeout / 8).min(Duration::from_millis(500))
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
