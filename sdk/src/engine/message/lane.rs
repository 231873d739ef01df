//! How much may wait at a receiver. The sender counts what it has sent, the receiver what it holds, in the same unit.

use super::super::transfer::Breach;
use super::Key;
use std::collections::VecDeque;

/// What a message costs beside its bytes.
pub(crate) const ENVELOPE: u64 = 128;
/// Messages that bring their bytes must fit into this together with all that waits: some dozens of the longest.
pub(crate) const EAGER_BUDGET: u64 = 512 << 10;
/// Announcements may fill this: 16,384 of them where nothing else waits.
pub(crate) const BUDGET: u64 = EAGER_BUDGET + 16_384 * ENVELOPE;

/// What a message costs: `bytes` of it wait with it.
fn cost(bytes: usize) -> u64 {
    ENVELOPE + bytes as u64
}

/// How a message leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Departure {
    /// With its bytes.
    Whole,
    /// Without them.
    Announced,
}

/// The messages to one rank, as their sender counts them.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// Sends of which nothing has left yet, in the order they were started.
    pub(super) queue: VecDeque<Key>,
    /// The cost of all that has left.
    sent: u64,
    /// The cost of what has been received of it, as far as is known.
    received: u64,
}

impl Lane {
    /// How a message of this length may leave now, if it may; at most `eager` bytes go unasked.
    pub(crate) fn departure(&self, len: usize, eager: usize) -> Option<Departure> {
        let waiting = self.sent - self.received;
        let budget = if len == 0 { BUDGET } else { EAGER_BUDGET };
        if len <= eager && waiting + cost(len) <= budget {
            return Some(Departure::Whole);
        }
        (len > 0 && waiting + ENVELOPE <= BUDGET).then_some(Departure::Announced)
    }

    /// Whether sends wait that were started before.
    pub(super) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    /// A message has left.
    pub(super) fn departed(&mut self, departure: Departure, len: usize) {
        self.sent += match departure {
            Departure::Whole => cost(len),
            Departure::Announced => ENVELOPE,
        };
    }

    /// The receiver says how much it has received in all.
    pub(super) fn credit(&mut self, received: u64) -> Result<(), Breach> {
        if received > self.sent {
            return Err(Breach("it received more messages than were sent to it"));
        }
        self.received = self.received.max(received);
        Ok(())
    }
}

/// The messages of one rank, as their receiver counts them.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    arrived: u64,
    received: u64,
    told: u64,
}

impl Shelf {
    /// A message has come, with its bytes or without. An error when its sender does not keep to the budget.
    pub(super) fn arrive(&mut self, departure: Departure, len: usize) -> Result<(), Breach> {
        let (cost, budget) = match departure {
            Departure::Whole if len > 0 => (cost(len), EAGER_BUDGET),
            Departure::Announced if len == 0 => return Err(Breach("it announced a message without a byte")),
            _ => (ENVELOPE, BUDGET),
        };
        self.arrived += cost;
        if self.waiting() > budget {
            return Err(Breach("it sent more messages than it was granted"));
        }
        Ok(())
    }

    /// A message that came like this has been received, or given up. What to tell the sender, if it should know by now.
    pub(super) fn receive(&mut self, departure: Departure, len: usize) -> Option<u64> {
        self.received += match departure {
            Departure::Whole => cost(len),
            Departure::Announced => ENVELOPE,
        };
        // Seldom enough to cost nothing, often enough that a steady stream never meets the end of its budget.
        let due = self.received - self.told >= EAGER_BUDGET / 4;
        due.then(|| {
            self.told = self.received;
            self.received
        })
    }

    /// The cost of what waits here.
    pub(crate) fn waiting(&self) -> u64 {
        self.arrived - self.received
    }
}
