//! Point-to-point messages: matched by source and tag, in the order they were sent.
//!
//! A short message is sent unasked; a long one announces itself, and the receiver opens its buffer once it is
//! matched. What arrives before a receive is posted waits in the receiver's mailbox, within a budget that the sender keeps
//! to: beyond it even short messages only announce themselves, and beyond a larger one they do not leave before others
//! have been received.

mod brief;
mod exchange;
pub(super) mod lane;
mod mailbox;
mod receiving;
mod sending;

pub(crate) use brief::{Expectation, Expected};
pub(crate) use lane::{Lane, Shelf};
pub(crate) use mailbox::Mailbox;
pub(crate) use receiving::Receiving;
pub(crate) use sending::{Payload, Sending};

use super::Key;
use super::port::Process;
use crate::Rank;

/// Marks the sequence numbers of point-to-point transfers: the rest is the sender's operation. Without one it is all
/// messages of the sender.
pub(crate) const POINT_TO_POINT: u64 = 1 << 63;

/// What a receiver grants when it wants nothing more of a message; what a sender announces when there is nothing more to
/// be had.
pub(crate) const OVER: u64 = u64::MAX;

/// What a receiver grants when it has read all of a message in the sender's memory; what a sender answers when that memory was
/// the message until then. Without the answer the sender may have given up, and what was read be something else.
pub(crate) const READ: u64 = u64::MAX - 1;

/// Lengths of messages that are read in the sender's memory. Up to 64 KiB two copies of our own were measured to be faster than
/// one of the system's: they stay in the second-level cache. And while a message is read nobody turns the crank, which must not
/// take long.
pub(crate) const READABLE: std::ops::RangeInclusive<usize> = (64 << 10) + 1..=64 << 20;

/// Whose message a receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    pub(crate) source: Option<Rank>,
    pub(crate) tag: Option<u32>,
}

impl Pattern {
    pub(crate) fn matches(self, head: &Head) -> bool {
        self.source.is_none_or(|wanted| wanted == head.source)
            && self.tag.is_none_or(|wanted| wanted == head.tag)
    }
}

/// What is known of a message before its bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) source: Rank,
    pub(crate) process: Process,
    pub(crate) tag: u32,
    /// Fingerprint of the elements' type.
    pub(crate) kind: u64,
    pub(crate) len: usize,
    /// The sequence number under which the sender awaits an answer; 0: it awaits none.
    pub(crate) sequence: u64,
    /// Where the bytes lie in the sender's memory, if it lets the receiver read them there.
    pub(crate) offer: Option<u64>,
}

/// A message that a probe has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) source: Rank,
    pub(crate) tag: u32,
    pub(crate) kind: u64,
    pub(crate) len: usize,
    /// Its number in the mailbox.
    pub(crate) number: u64,
}

/// Looks for a message without receiving it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probing {
    pub(crate) pattern: Pattern,
    /// Whether nobody else shall receive it.
    pub(crate) hold: bool,
}
