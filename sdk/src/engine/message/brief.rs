//! Short messages whose sender need not wait and whose receiver waits already: no operation is made for them. They travel as all
//! others do, and keep their place in the order: whatever does not fit in here is left to an operation.

use super::super::port::{Port, Sent};
use super::super::{Engine, GroupId, Letter};
use super::lane::Departure;
use super::mailbox::Envelope;
use super::{Head, Pattern};
use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::FrameKind;

/// A receive that is no operation. Those that are were started before it.
#[derive(Debug)]
pub(crate) struct Expected {
    pattern: Pattern,
    kind: u64,
    span: Span,
    received: Option<Head>,
}

/// What came of expecting a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expectation {
    /// It was here.
    Received(Head),
    /// It is to come, and goes to the span as soon as it does, until [`Engine::stop_expecting`].
    Pending,
    /// An operation is needed.
    Refused,
}

impl Engine {
    /// Sends a message at once, if nothing is in its way and it needs no answer. `false`: nothing has happened.
    pub(crate) fn send_briefly(
        &mut self,
        id: GroupId,
        (to, tag, kind): (Rank, u32, u64),
        bytes: &[u8],
        port: &mut dyn Port,
    ) -> bool {
        let Some(group) = self.groups.get_mut(&id).filter(|group| group.is_sound() && group.rank != to)
        else {
            return false;
        };
        let Some(&process) = group.members.get(to).filter(|process| !self.departures.contains(**process))
        else {
            return false;
        };
        let lane = group.lanes.entry(to).or_default();
        let departure = lane.departure(bytes.len(), port.eager_limit(process));
        if departure != Some(Departure::Whole) || lane.has_queue() {
            return false;
        }
        let mut header = id.header(FrameKind::Message, group.rank);
        (header.tag, header.signature) = (tag, kind);
        Letter::write(&mut self.scratch, header, bytes);
        let is_taken = port.send(process, &self.scratch) == Sent::Taken;
        if is_taken {
            lane.departed(Departure::Whole, bytes.len());
        }
        is_taken
    }

    /// A receive begins. The caller keeps the span alive and unused until it has its message or has stopped expecting it.
    pub(crate) fn expect(
        &mut self,
        id: GroupId,
        pattern: Pattern,
        kind: u64,
        span: Span,
        port: &mut dyn Port,
    ) -> Expectation {
        let Some(group) = self.groups.get_mut(&id).filter(|group| group.is_sound()) else {
            return Expectation::Refused;
        };
        let mut expected = Expected { pattern, kind, span, received: None };
        match group.mailbox.peek(pattern) {
            None if group.expected.is_none() => {
                group.expected = Some(expected);
                Expectation::Pending
            }
            Some(Envelope { number, head, body: Some(body), .. }) if expected.take(head, body) => {
                let (number, head) = (*number, *head);
                group.mailbox.take(number);
                self.make_room(id, &head, Departure::Whole, port);
                Expectation::Received(head)
            }
            _ => Expectation::Refused,
        }
    }

    /// Whether the expected message has come, or one that only an operation can take.
    pub(crate) fn has_something_for(&self, id: GroupId, pattern: Pattern) -> bool {
        self.groups.get(&id).is_none_or(|group| {
            group.expected.as_ref().is_none_or(|expected| expected.received.is_some())
                || group.mailbox.peek(pattern).is_some()
        })
    }

    /// The message, if it has come. Afterwards nobody uses the span.
    pub(crate) fn stop_expecting(&mut self, id: GroupId) -> Option<Head> {
        self.groups.get_mut(&id)?.expected.take()?.received
    }

    /// Gives a message that has just come, and that no operation wants, to the receive that waits. Whether it did: not if one that
    /// came before, and that only an operation can take, is for it as well.
    pub(super) fn meets_expectation(
        &mut self,
        id: GroupId,
        head: &Head,
        body: &[u8],
        port: &mut dyn Port,
    ) -> bool {
        let Some(group) = self.groups.get_mut(&id) else { return false };
        let Some(expected) = &mut group.expected else { return false };
        let is_met = group.mailbox.peek(expected.pattern).is_none() && expected.take(head, body);
        if is_met {
            self.make_room(id, head, Departure::Whole, port);
        }
        is_met
    }
}

impl Expected {
    /// Takes a message, if it is the first and needs nothing but to be copied.
    fn take(&mut self, head: &Head, body: &[u8]) -> bool {
        let fits = self.pattern.matches(head) && head.kind == self.kind && head.len <= self.span.len();
        if !fits || head.sequence != 0 || self.received.is_some() {
            return false;
        }
        self.span.write(body);
        self.received = Some(*head);
        true
    }
}
