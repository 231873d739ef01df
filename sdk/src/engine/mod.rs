//! What happens on the network, without the network: events in, messages and puts out.
//!
//! The engine owns every operation that crosses a transport: agreement on what is called, plans, point-to-point
//! messages, time-outs, and the first cause when something goes wrong. It reads no clock, opens no socket and
//! owns no thread; the driver feeds it and carries out what it asks of the [`Port`].

mod agreement;
mod departure;
mod fault;
mod flow;
mod group;
mod inbox;
mod message;
mod operation;
mod port;
mod report;
mod slot;
#[cfg(test)]
mod tests;
mod timeout;
mod transfer;
mod window;

pub(crate) use agreement::Contribution;
use departure::Departures;
use fault::Fault;
pub(crate) use flow::Job;
pub(crate) use group::{Calls, GroupId};
pub(crate) use message::{Expectation, Found, Head, Pattern, Payload, Probing};
use operation::call;
pub(crate) use operation::{Outcome, Part, Then, Work, mismatch};
pub(crate) use port::{Port, Process, Sent, Staging};
pub(crate) use window::Window;

use crate::{Error, Rank};
use gradwire_schema::{CallSignature, FrameHeader};
use group::{Dropped, Ending, Group};
use operation::Operation;
use rustc_hash::FxHashMap as HashMap;
use slot::Slots;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An operation under way, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Key(pub(crate) u32);

/// A message that waits until the port takes it.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: Process,
    pub(crate) bytes: Vec<u8>,
}

impl Letter {
    /// A frame of this kind and payload.
    pub(crate) fn new(to: Process, header: FrameHeader, payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(FrameHeader::LEN + payload.len());
        Self::write(&mut bytes, header, payload);
        Self { to, bytes }
    }

    /// The bytes of a letter, in place of what is there.
    fn write(bytes: &mut Vec<u8>, mut header: FrameHeader, payload: &[u8]) {
        header.payload_len = payload.len() as u64;
        bytes.clear();
        bytes.extend_from_slice(&header.encode());
        bytes.extend_from_slice(payload);
    }
}

/// The call that an operation belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Begin {
    pub(crate) group: GroupId,
    /// The number of the collective; ignored by point-to-point operations.
    pub(crate) sequence: u64,
    pub(crate) signature: CallSignature,
    pub(crate) started: Instant,
    /// `None` waits for ever.
    pub(crate) timeout: Option<Duration>,
}

/// All operations of a process.
#[derive(Debug)]
pub(crate) struct Engine {
    own: Process,
    groups: HashMap<GroupId, Group>,
    dropped: Dropped,
    /// In the order they were started.
    operations: BTreeMap<Key, Operation>,
    /// Those that are advanced at every turn, in the same order.
    restless: BTreeSet<Key>,
    /// When operations are looked at again, soonest first.
    deadlines: BTreeSet<(Instant, Key)>,
    next_key: u32,
    slots: Slots,
    /// Messages that the port did not take yet, oldest first.
    outbox: VecDeque<Letter>,
    /// Frames of communicators that do not exist here yet.
    strangers: Vec<(Process, FrameHeader, Vec<u8>)>,
    /// What others have given up of communicators that do not exist here yet, and from which call on.
    early_reports: Vec<(GroupId, Fault, u64)>,
    /// Why all communicators have ended, and those to come will.
    stopped: Option<Fault>,
    /// Processes that are gone, for whatever reason.
    departures: Departures,
    /// The time of the present turn.
    now: Instant,
    hosts: Vec<Arc<str>>,
    finished: Vec<(Key, Result<Outcome, Error>)>,
    /// Something was given up here of which others have still to hear.
    alarmed: bool,
    scratch: Vec<u8>,
    windows: window::Windows,
    /// Why all calls fail, where they do.
    orphaned: Option<Error>,
}

impl Engine {
    /// The engine of process `own`; `hosts` tells where each process of the job runs.
    pub(crate) fn new(own: Process, hosts: Vec<Arc<str>>, now: Instant) -> Self {
        Self {
            own,
            groups: HashMap::default(),
            dropped: Dropped::default(),
            operations: BTreeMap::new(),
            restless: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            next_key: 1,
            slots: Slots::new(),
            outbox: VecDeque::new(),
            strangers: Vec::new(),
            early_reports: Vec::new(),
            stopped: None,
            departures: Departures::default(),
            now,
            hosts,
            finished: Vec::new(),
            alarmed: false,
            scratch: Vec::new(),
            windows: window::Windows::default(),
            orphaned: None,
        }
    }

    /// That of a forked child: every call fails.
    pub(crate) fn orphaned() -> Self {
        let text = "this process was forked off a rank: it is no rank itself, and has no communicators";
        Self { orphaned: Some(Error::Misuse(text.into())), ..Self::new(0, vec!["".into()], Instant::now()) }
    }

    /// A turn begins.
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Makes a communicator known. What its members sent before is looked at now.
    pub(crate) fn add_group(
        &mut self,
        id: GroupId,
        members: Arc<[Process]>,
        rank: Rank,
        calls: Arc<Calls>,
        port: &mut dyn Port,
    ) {
        let mut group = Group::new(members, rank, calls);
        if let Some(fault) = &self.stopped {
            group.end(Ending { fault: fault.clone(), from: 0 });
        }
        self.groups.insert(id, group);
        let reports: Vec<_> = self.early_reports.extract_if(.., |(other, ..)| *other == id).collect();
        for (_, fault, from) in reports {
            self.give_up(id, fault, from, port);
        }
        for (process, header, payload) in std::mem::take(&mut self.strangers) {
            self.dispatch(process, &header, &payload, port);
        }
    }

    /// Forgets a communicator. What was sent with a buffer still leaves.
    pub(crate) fn remove_group(&mut self, id: GroupId, port: &mut dyn Port) {
        let keys: Vec<Key> = self
            .operations
            .iter()
            .filter(|(_, op)| op.begin.group == id && op.buffered().is_none())
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            self.fail(key, Error::Misuse("the communicator was dropped".into()), port);
        }
        if let Some(group) = self.groups.get_mut(&id) {
            group.dropped = true;
        }
        self.sweep(id);
    }

    /// Removes a communicator that was dropped and has nothing more to send.
    fn sweep(&mut self, id: GroupId) {
        if self.groups.get(&id).is_some_and(|group| group.dropped)
            && !self.operations.values().any(|operation| operation.begin.group == id)
        {
            self.groups.remove(&id);
            self.dropped.insert(id);
        }
    }

    /// How many communicators, operations, and frames and reports of communicators to come it knows of.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> [usize; 4] {
        [self.groups.len(), self.operations.len(), self.strangers.len(), self.early_reports.len()]
    }

    /// Why a collective on the communicator fails, if it does.
    pub(crate) fn fault(&self, id: GroupId, sequence: u64) -> Option<Error> {
        if self.orphaned.is_some() {
            return self.orphaned.clone();
        }
        let group = self.groups.get(&id)?;
        let ending = group.ending.as_ref().filter(|ending| sequence >= ending.from)?;
        Some(ending.fault.error(&group.members, self.own).on(group.calls.name()))
    }

    /// Whether a member makes a call that has not been begun here.
    pub(crate) fn expects(&self, id: GroupId, sequence: u64) -> bool {
        self.groups.get(&id).is_some_and(|group| group.early.contains_key(&sequence))
    }

    /// Starts an operation. Its end is reported by [`finished`](Self::finished).
    pub(crate) fn begin(&mut self, begin: Begin, work: Work, port: &mut dyn Port) -> Key {
        let key = Key(self.next_key);
        self.next_key = self.next_key.wrapping_add(1).max(1);
        self.check_before(&begin, &work, port);
        let sequence = if work.is_collective() { begin.sequence } else { u64::MAX };
        if let Some(error) = self.fault(begin.group, sequence) {
            self.finished.push((key, Err(error)));
            return key;
        }
        let Some(group) = self.groups.get_mut(&begin.group) else {
            self.finished.push((key, Err(Error::Misuse("the communicator was dropped".into()))));
            return key;
        };
        if let Work::Send { payload: Payload::Buffered(bytes, limit), .. } = &work {
            let free = limit.saturating_sub(group.buffered);
            if bytes.len() > free {
                let full = Error::BufferFull { len: bytes.len(), free, limit: *limit };
                self.finished.push((key, Err(full)));
                return key;
            }
            group.buffered += bytes.len();
        }
        let id = begin.group;
        let operation = Operation::new(key, begin, work, group);
        let early = if operation.is_collective() {
            group.begun = group.begun.max(sequence + 1);
            group.activate(sequence, key);
            group.early.remove(&sequence).unwrap_or_default()
        } else {
            Vec::new()
        };
        self.deadlines.extend(operation.due().map(|due| (due, key)));
        self.operations.insert(key, operation);
        self.start_message(id, key, port);
        for (process, header, payload) in early {
            self.dispatch(process, &header, &payload, port);
        }
        self.advance(key, port);
        self.settle(port);
        key
    }

    /// Gives up a call that cannot end, because a process has gone before it was begun: no collective, and no message to
    /// the process.
    fn check_before(&mut self, begin: &Begin, work: &Work, port: &mut dyn Port) {
        let Some(group) = self.groups.get(&begin.group) else { return };
        let (process, from) = match work {
            Work::Exchange { .. } | Work::Planned(_) | Work::InParts(..) => {
                (self.first_to_leave(group), begin.sequence)
            }
            Work::Send { to, .. } => {
                let to = group.members.get(*to).copied();
                (to.filter(|to| self.departures.contains(*to)), group.calls.count())
            }
            // What it takes may be here.
            Work::Receive { .. } | Work::Probe(_) => return,
        };
        if let Some(process) = process {
            self.lose(begin.group, process, from, port);
        }
    }

    /// Ends an operation that nobody waits for any more.
    pub(crate) fn cancel(&mut self, key: Key, port: &mut dyn Port) {
        self.fail(key, Error::Misuse("the call was given up".into()), port);
    }

    /// Operations that have ended since the last call.
    pub(crate) fn finished(&mut self) -> impl Iterator<Item = (Key, Result<Outcome, Error>)> {
        self.finished.drain(..)
    }

    /// Whether an operation has ended since the last call of [`finished`](Self::finished).
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Whether no operation is under way.
    pub(crate) fn has_ended_all(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether there are messages that the port did not take yet.
    pub(crate) fn has_mail(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether anything is under way that time or a peer could end.
    pub(crate) fn is_idle(&self) -> bool {
        self.operations.is_empty() && self.outbox.is_empty()
    }

    /// Moves whatever can be moved: messages that were not taken, then the operations that no event would move.
    pub(crate) fn advance_all(&mut self, port: &mut dyn Port) {
        self.acknowledge(port);
        self.flush(port);
        let mut next = self.restless.first().copied();
        while let Some(key) = next {
            self.advance(key, port);
            next = self.restless.range((Bound::Excluded(key), Bound::Unbounded)).next().copied();
        }
        self.settle(port);
    }

    fn flush(&mut self, port: &mut dyn Port) {
        // A peer that takes nothing must not hold up the letters to others.
        let mut full: Vec<Process> = Vec::new();
        self.outbox.retain(|letter| {
            if full.contains(&letter.to) {
                return true;
            }
            let taken = port.send(letter.to, &letter.bytes) == Sent::Taken;
            if !taken {
                full.push(letter.to);
            }
            !taken
        });
    }

    /// Sends a letter now, or as soon as the letters before it are gone.
    fn post(&mut self, letter: Letter, port: &mut dyn Port) {
        if letter.to == self.own {
            return self.receive(self.own, &letter.bytes, port);
        }
        let behind = self.outbox.iter().any(|other| other.to == letter.to);
        if behind || port.send(letter.to, &letter.bytes) == Sent::Full {
            self.outbox.push_back(letter);
        }
    }

    fn advance(&mut self, key: Key, port: &mut dyn Port) {
        let Some(operation) = self.operations.get_mut(&key) else { return };
        if let Some(to) = operation.queued_to() {
            let id = operation.begin.group;
            if self.is_next(id, to, key) {
                self.send_next(id, to, port);
            }
            return;
        }
        let mut letters = Vec::new();
        let result = operation.advance(port, &mut self.slots, &mut letters, &mut self.scratch);
        for letter in letters {
            self.post(letter, port);
        }
        match result {
            Ok(None) => self.note(key),
            Ok(Some(result)) => self.finish(key, result, port),
            Err((process, breach)) => {
                self.expel(process, breach, port);
                if let Some(operation) = self.operations.get(&key) {
                    let (id, from) = (operation.begin.group, self.given_up_from(operation));
                    self.lose(id, process, from, port);
                }
            }
        }
    }

    /// Notes whether an operation is to be advanced at every turn.
    fn note(&mut self, key: Key) {
        if self.operations.get(&key).is_some_and(Operation::is_restless) {
            self.restless.insert(key);
        } else {
            self.restless.remove(&key);
        }
    }

    fn finish(&mut self, key: Key, mut result: Result<Outcome, Error>, port: &mut dyn Port) {
        let Some(mut operation) = self.operations.remove(&key) else { return };
        self.restless.remove(&key);
        if let Some(due) = operation.due() {
            self.deadlines.remove(&(due, key));
        }
        let id = operation.begin.group;
        if let Some(letter) = operation.close(port, &mut self.slots) {
            self.post(letter, port);
        }
        if let Some(group) = self.groups.get_mut(&operation.begin.group) {
            group.deactivate(operation.begin.sequence, key);
            if operation.is_posted() {
                group.mailbox.forget(key);
            }
            group.buffered -= operation.buffered().unwrap_or(0);
            result = result.map_err(|error| error.on(group.calls.name()));
        }
        self.finished.push((key, result));
        if let Some(to) = operation.queued_to() {
            self.leave_queue(id, to, key, port);
        }
        self.sweep(id);
    }

    fn fail(&mut self, key: Key, error: Error, port: &mut dyn Port) {
        self.finish(key, Err(error), port);
    }
}
