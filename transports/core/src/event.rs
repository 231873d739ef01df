//! What a transport reports, in an arena that the caller owns and reuses.

use crate::{FailReason, LossReason, Notice, Peer, Tag, Token};
use std::ops::Range;

/// Whether [`progress`](crate::Transport::progress) did anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Bytes moved, or something was reported.
    Busy,
    /// Nothing to do: the caller may spin, yield or sleep.
    Idle,
}

impl Activity {
    /// Busy when either is.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == Self::Busy { self } else { other }
    }
}

/// One report, as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The peer proved that it belongs to the job; operations may be posted.
    Connected(Peer),
    /// The operation is over for this side: its source may be changed (put), its destination holds the data (get, atomic).
    Done(Token),
    /// A put of `peer` has arrived; its bytes may be read now, not before.
    Notified(Peer, Notice),
    /// A message; its bytes lie in the arena.
    Received(Peer, Tag, Range<usize>),
    /// The operation is over, and may or may not have had an effect.
    Failed(Token, FailReason),
    /// A path to the peer was lost; the transport is repairing it.
    PathLost(Peer),
    /// The peer is gone for good. Each of its operations has failed before. Reported exactly once.
    PeerLost(Peer, LossReason),
}

/// One report, as read: messages come with their bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventRef<'a> {
    /// A message and its bytes.
    Received(Peer, Tag, &'a [u8]),
    /// Everything else.
    Other(&'a Event),
}

/// Reports and the bytes of received messages. Recycled: `clear` keeps the memory.
#[derive(Clone, Debug, Default)]
pub struct Events {
    events: Vec<Event>,
    bytes: Vec<u8>,
}

impl Events {
    /// An empty arena.
    #[must_use]
    pub const fn new() -> Self {
        Self { events: Vec::new(), bytes: Vec::new() }
    }

    /// Forgets all reports and keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
    }

    /// Adds a report that is not a message.
    pub fn push(&mut self, event: Event) {
        debug_assert!(!matches!(event, Event::Received(..)), "messages go through push_received");
        self.events.push(event);
    }

    /// Adds a message. `bytes` have arrived already: the arena grows by what came, not by what a peer announced.
    pub fn push_received(&mut self, peer: Peer, tag: Tag, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.events.push(Event::Received(peer, tag, start..self.bytes.len()));
    }

    /// How many reports there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The reports in the order they were made.
    pub fn iter(&self) -> impl Iterator<Item = EventRef<'_>> {
        self.events.iter().map(|event| match event {
            Event::Received(peer, tag, range) => EventRef::Received(*peer, *tag, &self.bytes[range.clone()]),
            other => EventRef::Other(other),
        })
    }
}

/// Adds reports that are not messages.
impl Extend<Event> for Events {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}
