//! Who wants which message: receives and probes without a message, messages without a receive.

use super::super::port::Process;
use super::{Found, Head, Key, Pattern, Probing};
use std::collections::VecDeque;

/// A message that waits to be received.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(super) number: u64,
    pub(super) head: Head,
    /// Its bytes; `None` when it only announced itself.
    pub(super) body: Option<Vec<u8>>,
    /// Only who knows its number may receive it.
    held: bool,
}

impl Envelope {
    fn found(&self) -> Found {
        let Head { source, tag, kind, len, .. } = self.head;
        Found { source, tag, kind, len, number: self.number }
    }
}

/// Probes that have ended, with what they have found.
pub(super) type Finds = Vec<(Key, Found)>;

/// The mailbox of a communicator.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// Receives without a message, in the order they were started.
    posted: VecDeque<(Key, Pattern)>,
    /// Probes without a message, in the order they were started.
    probes: Vec<(Key, Probing)>,
    /// Messages without a receive, in the order they came.
    waiting: VecDeque<Envelope>,
    next_number: u64,
}

impl Mailbox {
    /// The receive that a message which has just come is for, if one waits for it.
    pub(super) fn claim(&mut self, head: &Head) -> Option<Key> {
        let index = self.posted.iter().position(|(_, pattern)| pattern.matches(head))?;
        self.posted.remove(index).map(|(key, _)| key)
    }

    /// Keeps a message that no receive waits for. The probes that have found it.
    pub(super) fn keep(&mut self, head: Head, body: Option<Vec<u8>>) -> Finds {
        let number = self.next_number;
        self.next_number += 1;
        self.waiting.push_back(Envelope { number, head, body, held: false });
        self.show(self.waiting.len() - 1)
    }

    /// A new receive: the first message for it. Without one it waits, before all that were started later.
    pub(super) fn post(&mut self, key: Key, pattern: Pattern) -> Option<Envelope> {
        let Some(index) = self.first(pattern) else {
            let place = self.posted.partition_point(|(other, _)| *other < key);
            self.posted.insert(place, (key, pattern));
            return None;
        };
        self.waiting.remove(index)
    }

    /// The first message for a receive.
    pub(super) fn peek(&self, pattern: Pattern) -> Option<&Envelope> {
        self.waiting.get(self.first(pattern)?)
    }

    /// The first message that a probe finds now.
    pub(super) fn look(&mut self, probing: Probing) -> Option<Found> {
        let index = self.first(probing.pattern)?;
        let envelope = self.waiting.get_mut(index)?;
        envelope.held = probing.hold;
        Some(envelope.found())
    }

    /// A new probe: what it finds. Without a message it waits.
    pub(super) fn probe(&mut self, key: Key, probing: Probing) -> Option<Found> {
        let found = self.look(probing);
        if found.is_none() {
            self.probes.push((key, probing));
        }
        found
    }

    /// The message with a number: one that a probe holds, or that `peek` has shown.
    pub(super) fn take(&mut self, number: u64) -> Option<Envelope> {
        let index = self.place_of(number)?;
        self.waiting.remove(index)
    }

    /// A message that a probe has held is anybody's again: the receive that takes it, or the probes that have found it.
    pub(super) fn let_go(&mut self, number: u64) -> (Option<(Key, Envelope)>, Finds) {
        let Some(index) = self.place_of(number) else { return (None, Vec::new()) };
        let head = self.waiting[index].head;
        if let Some(key) = self.claim(&head) {
            return (self.waiting.remove(index).map(|envelope| (key, envelope)), Vec::new());
        }
        self.waiting[index].held = false;
        (None, self.show(index))
    }

    /// The sender of an announced message has given it up. What is known of it, if it still waited.
    pub(super) fn withdraw(&mut self, process: Process, sequence: u64) -> Option<Head> {
        let same = |envelope: &Envelope| {
            envelope.body.is_none() && (envelope.head.process, envelope.head.sequence) == (process, sequence)
        };
        let index = self.waiting.iter().position(same)?;
        self.waiting.remove(index).map(|envelope| envelope.head)
    }

    /// An operation has ended.
    pub(crate) fn forget(&mut self, key: Key) {
        self.posted.retain(|(other, _)| *other != key);
        self.probes.retain(|(other, _)| *other != key);
    }

    /// The probes that have found the message at a place: all up to the first that holds it.
    fn show(&mut self, index: usize) -> Finds {
        let Some(envelope) = self.waiting.get_mut(index) else { return Vec::new() };
        let found = envelope.found();
        let mut all = Vec::new();
        self.probes.retain(|(key, probing)| {
            if envelope.held || !probing.pattern.matches(&envelope.head) {
                return true;
            }
            envelope.held = probing.hold;
            all.push((*key, found));
            false
        });
        all
    }

    fn first(&self, pattern: Pattern) -> Option<usize> {
        self.waiting.iter().position(|envelope| !envelope.held && pattern.matches(&envelope.head))
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        self.waiting.iter().position(|envelope| envelope.number == number)
    }
}
