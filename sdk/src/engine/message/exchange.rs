//! What the engine does with messages.

use super::super::operation::Operation;
use super::super::port::{Port, Process, Sent};
use super::super::transfer::Breach;
use super::super::{Engine, Fault, GroupId, Letter, Outcome};
use super::lane::Departure;
use super::mailbox::{Envelope, Finds};
use super::{Found, Head, Key, OVER, POINT_TO_POINT, Pattern, Probing, READ, Receiving};
use crate::{Error, Rank};
use gradwire_schema::{FrameHeader, FrameKind};
use std::collections::BTreeMap;

impl Engine {
    /// The message that a probe finds now. `hold`: only [`Work::Receive`](super::super::Work) with its number gets it.
    pub(crate) fn look(&mut self, id: GroupId, probing: Probing) -> Result<Option<Found>, Error> {
        if let Some(error) = self.fault(id, u64::MAX) {
            return Err(error);
        }
        let Some(group) = self.groups.get_mut(&id) else {
            return Err(Error::Misuse("the communicator was dropped".into()));
        };
        let found = group.mailbox.look(probing);
        // Whatever a process has sent comes before the news that it has left.
        let source = probing.pattern.source.and_then(|source| group.members.get(source)).copied();
        let members = group.members.clone();
        match source.filter(|process| found.is_none() && self.departures.contains(*process)) {
            Some(process) => {
                let (host, reason) = (self.host(process), self.reason(process));
                Err(Fault::Lost { process, host, reason }.error(&members, self.own))
            }
            None => Ok(found),
        }
    }

    /// Gives a message that was held back to everybody, at its place in the order.
    pub(crate) fn let_go(&mut self, id: GroupId, number: u64, port: &mut dyn Port) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let (received, found) = group.mailbox.let_go(number);
        if let Some((key, envelope)) = received {
            self.hand_over(id, key, envelope, port);
        }
        self.found(found, port);
    }

    /// A send, receive or probe begins.
    pub(in super::super) fn start_message(&mut self, id: GroupId, key: Key, port: &mut dyn Port) {
        let Some(operation) = self.operations.get_mut(&key) else { return };
        if operation.sending().is_some() {
            self.start_send(id, key, port);
        } else if let Some(receiving) = operation.receiving() {
            let (pattern, number) = (receiving.pattern, receiving.number);
            self.start_receive(id, key, pattern, number, port);
        } else if let Some(probing) = operation.probing() {
            self.start_probe(id, key, probing, port);
        }
    }

    /// Lets the messages to a rank leave in their order, as far as the budget there lasts and the transport takes them.
    pub(in super::super) fn send_next(&mut self, id: GroupId, to: Rank, port: &mut dyn Port) {
        loop {
            let Some(lane) = self.groups.get_mut(&id).and_then(|group| group.lanes.get_mut(&to)) else {
                return;
            };
            let Some(&key) = lane.queue.front() else { return };
            let Some(sending) = self.operations.get_mut(&key).and_then(Operation::sending) else {
                lane.queue.pop_front();
                continue;
            };
            let len = sending.span().len();
            let Some(departure) = lane.departure(len, port.eager_limit(sending.process)) else { return };
            if sending.depart(key, departure, port, &mut self.scratch) == Sent::Full {
                self.restless.insert(key);
                return;
            }
            lane.queue.pop_front();
            lane.departed(departure, len);
            self.advance(key, port);
        }
    }

    /// A send of which nothing has left has ended: those behind it may leave.
    pub(in super::super) fn leave_queue(&mut self, id: GroupId, to: Rank, key: Key, port: &mut dyn Port) {
        if let Some(lane) = self.groups.get_mut(&id).and_then(|group| group.lanes.get_mut(&to)) {
            lane.queue.retain(|other| *other != key);
        }
        self.send_next(id, to, port);
    }

    /// Whether a send is the next to leave.
    pub(in super::super) fn is_next(&self, id: GroupId, to: Rank, key: Key) -> bool {
        let lane = self.groups.get(&id).and_then(|group| group.lanes.get(&to));
        lane.is_some_and(|lane| lane.queue.front() == Some(&key))
    }

    /// A message, or the announcement of one, or of its end.
    pub(in super::super) fn message(
        &mut self,
        id: GroupId,
        process: Process,
        source: Rank,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), Breach> {
        let whole = header.kind == FrameKind::Message;
        if !whole && header.sequence & POINT_TO_POINT == 0 {
            return Err(Breach("it announced a message without a name"));
        }
        if !whole && header.offset == OVER {
            self.withdraw(id, process, header.sequence, port);
            return Ok(());
        }
        if !whole && header.offset == READ {
            self.confirm(id, process, header.sequence, port);
            return Ok(());
        }
        let len = if whole { payload.len() } else { usize::try_from(header.offset).unwrap_or(usize::MAX) };
        let departure = if whole { Departure::Whole } else { Departure::Announced };
        let offer = payload.try_into().ok().map(u64::from_le_bytes).filter(|_| !whole);
        let Some(group) = self.groups.get_mut(&id) else { return Ok(()) };
        group.shelves.entry(source).or_default().arrive(departure, len)?;
        let head = Head {
            source,
            process,
            tag: header.tag,
            kind: header.signature,
            len,
            sequence: header.sequence,
            offer,
        };
        match group.mailbox.claim(&head) {
            Some(key) => self.take(id, key, head, whole.then_some(payload), port),
            None if whole && self.meets_expectation(id, &head, payload, port) => {}
            None => {
                let Some(group) = self.groups.get_mut(&id) else { return Ok(()) };
                let found = group.mailbox.keep(head, whole.then(|| payload.to_vec()));
                self.found(found, port);
            }
        }
        Ok(())
    }

    /// The receiver of one of our messages opened its memory, or has room for more, or wants no more; or room for more
    /// messages.
    pub(in super::super) fn answered(
        &mut self,
        id: GroupId,
        process: Process,
        rank: Rank,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) -> Result<(), Breach> {
        if header.kind == FrameKind::Credit && header.sequence == POINT_TO_POINT {
            if let Some(group) = self.groups.get_mut(&id) {
                group.lanes.entry(rank).or_default().credit(header.offset)?;
            }
            self.send_next(id, rank, port);
            return Ok(());
        }
        let key = Key(header.sequence as u32);
        // Without the operation: it has been given up, which the receiver has been told.
        if let Some(sending) = self.operations.get_mut(&key).and_then(Operation::sending) {
            let confirmation = sending.answered(process, key, header, payload, port)?;
            if let Some(header) = confirmation {
                self.post(Letter::new(process, header, &[]), port);
            }
            self.advance(key, port);
        }
        Ok(())
    }

    /// A new send: leaves when those before it have.
    fn start_send(&mut self, id: GroupId, key: Key, port: &mut dyn Port) {
        let (Some(group), Some(sending)) =
            (self.groups.get_mut(&id), self.operations.get_mut(&key).and_then(Operation::sending))
        else {
            return;
        };
        let to = sending.to;
        if to != group.rank {
            group.lanes.entry(to).or_default().queue.push_back(key);
            return self.send_next(id, to, port);
        }
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(sending.span().len()).is_err() {
            let reason = format!("there is no memory to keep a message of {} bytes", sending.span().len());
            return self.fail(key, Error::System(reason.into()), port);
        }
        sending.span().append_to(&mut bytes);
        sending.deposited();
        let head = sending.head(self.own, key);
        self.deliver(id, head, Some(bytes), port);
        self.advance(key, port);
    }

    /// A new receive: takes the first message for it, or the one with a number if it has not been withdrawn.
    fn start_receive(
        &mut self,
        id: GroupId,
        key: Key,
        pattern: Pattern,
        number: Option<u64>,
        port: &mut dyn Port,
    ) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let held = number.and_then(|number| group.mailbox.take(number));
        if let Some(envelope) = held.or_else(|| group.mailbox.post(key, pattern)) {
            self.hand_over(id, key, envelope, port);
        }
    }

    /// A new probe.
    fn start_probe(&mut self, id: GroupId, key: Key, probing: Probing, port: &mut dyn Port) {
        let found = self.groups.get_mut(&id).and_then(|group| group.mailbox.probe(key, probing));
        if let Some(found) = found {
            self.found(vec![(key, found)], port);
        }
    }

    /// A message of this process to itself: the first receive that wants it gets it, or it is kept.
    fn deliver(&mut self, id: GroupId, head: Head, body: Option<Vec<u8>>, port: &mut dyn Port) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        match group.mailbox.claim(&head) {
            Some(key) => self.take(id, key, head, body.as_deref(), port),
            None => {
                let found = group.mailbox.keep(head, body);
                self.found(found, port);
            }
        }
    }

    fn hand_over(&mut self, id: GroupId, key: Key, envelope: Envelope, port: &mut dyn Port) {
        self.take(id, key, envelope.head, envelope.body.as_deref(), port);
    }

    /// A receive has its message.
    fn take(&mut self, id: GroupId, key: Key, head: Head, body: Option<&[u8]>, port: &mut dyn Port) {
        if let Some(receiving) = self.operations.get_mut(&key).and_then(Operation::receiving) {
            receiving.take(head, body);
        }
        let departure = if body.is_some() { Departure::Whole } else { Departure::Announced };
        self.make_room(id, &head, departure, port);
        self.advance(key, port);
    }

    /// A message waits no longer: its sender may send more.
    pub(super) fn make_room(&mut self, id: GroupId, head: &Head, departure: Departure, port: &mut dyn Port) {
        let Some(group) = self.groups.get_mut(&id).filter(|group| group.rank != head.source) else { return };
        let Some(total) = group.shelves.entry(head.source).or_default().receive(departure, head.len) else {
            return;
        };
        let mut header = id.header(FrameKind::Credit, group.rank);
        (header.sequence, header.offset) = (POINT_TO_POINT, total);
        self.post(Letter::new(head.process, header, &[]), port);
    }

    /// The sender has given up a message that it had announced: as if it had never been sent.
    fn withdraw(&mut self, id: GroupId, process: Process, sequence: u64, port: &mut dyn Port) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if let Some(head) = group.mailbox.withdraw(process, sequence) {
            return self.make_room(id, &head, Departure::Announced, port);
        }
        let slots = &mut self.slots;
        let reposted = receives(&mut self.operations, id).find_map(|(key, receiving)| {
            receiving.withdraw(process, sequence, port, slots).then_some((key, receiving.pattern))
        });
        if let Some((key, pattern)) = reposted {
            self.start_receive(id, key, pattern, None, port);
        }
    }

    /// What was read in the sender's memory was the message.
    fn confirm(&mut self, id: GroupId, process: Process, sequence: u64, port: &mut dyn Port) {
        let read = receives(&mut self.operations, id)
            .find_map(|(key, receiving)| receiving.confirm(process, sequence).then_some(key));
        // Without the operation: it has been given up meanwhile.
        if let Some(key) = read {
            self.advance(key, port);
        }
    }

    fn found(&mut self, all: Finds, port: &mut dyn Port) {
        for (key, found) in all {
            self.finish(key, Ok(Outcome::Found(found)), port);
        }
    }
}

/// The receives of a communicator that are under way.
fn receives(
    operations: &mut BTreeMap<Key, Operation>,
    id: GroupId,
) -> impl Iterator<Item = (Key, &mut Receiving)> {
    let of_group = operations.iter_mut().filter(move |(_, operation)| operation.begin.group == id);
    of_group.filter_map(|(key, operation)| Some((*key, operation.receiving()?)))
}
