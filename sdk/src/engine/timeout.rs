//! When something goes wrong: lost peers, time-outs, aborts. The first cause wins, and everybody is told.

use super::fault::Fault;
use super::operation::call;
use super::port::{Port, Process};
use super::transfer::Breach;
use super::{Begin, Engine, GroupId, Key, Letter};
use crate::{Call, Rank};
use gradwire_schema::control::{AbortCause, AbortReport};
use gradwire_schema::{FrameHeader, FrameKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long puts of a process that has left may take to arrive.
const GRACE: Duration = Duration::from_millis(100);

/// Between the name and the arguments of a call, in the text of a report.
const CALL: &str = ": ";

/// How long before a deadline the peers are asked where they are, at most.
const PROBE: Duration = Duration::from_millis(500);

impl Engine {
    /// When [`tick`](Self::tick) must be called next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.operations
            .values()
            .filter_map(|operation| {
                let deadline = operation.deadline?;
                Some(if operation.probed { deadline } else { probe_time(deadline, &operation.begin) })
            })
            .chain(self.departures.iter().map(|(_, at)| *at))
            .min()
    }

    /// Asks and ends operations whose time has come. Everything that has arrived was looked at before.
    pub(crate) fn tick(&mut self, now: Instant, port: &mut dyn Port) {
        let settled: Vec<Process> =
            self.departures.extract_if(.., |(_, at)| *at <= now).map(|(process, _)| process).collect();
        settled.into_iter().for_each(|process| self.settle(process, port));
        let due = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        let probes: Vec<Key> = self
            .operations
            .iter()
            .filter(|(_, op)| !op.probed && due(op.deadline.map(|deadline| probe_time(deadline, &op.begin))))
            .map(|(key, _)| *key)
            .collect();
        for key in probes {
            self.probe(key, port);
        }
        let late: Vec<Key> =
            self.operations.iter().filter(|(_, op)| due(op.deadline)).map(|(key, _)| *key).collect();
        for key in late {
            self.time_out(key, now, port);
        }
    }

    /// A call outside of the engine, on shared memory, passed its deadline: everybody is told.
    pub(crate) fn report_time_out(
        &mut self,
        begin: &Begin,
        waiting_for: &[Rank],
        now: Instant,
        port: &mut dyn Port,
    ) {
        self.raise_time_out(
            begin.group,
            call(&begin.signature, begin.sequence),
            now - begin.started,
            waiting_for,
            port,
        );
    }

    /// Whether any process has left.
    pub(crate) fn anybody_left(&self) -> bool {
        !self.gone.is_empty()
    }

    /// A call outside of the engine needs a process: if it has left, that ends the communicator.
    pub(crate) fn check_presence(&mut self, id: GroupId, process: Process, port: &mut dyn Port) {
        if self.groups.contains_key(&id)
            && let Some(reason) = self.gone.get(&process).cloned()
        {
            self.raise(Fault::Lost { process, host: self.host(process), reason }, true, port);
        }
    }

    /// A process wrote into shared memory what no correct process writes.
    pub(crate) fn breach(&mut self, process: Process, what: &'static str, port: &mut dyn Port) {
        self.expel(process, Breach(what), port);
    }

    /// This process asks everyone to stop.
    pub(crate) fn abort(&mut self, reason: &str, port: &mut dyn Port) {
        self.raise(Fault::Aborted { process: self.own, reason: reason.into() }, true, port);
    }

    /// Whether a fault has become known, since the last call, that was told to others.
    pub(crate) fn take_alarm(&mut self) -> bool {
        std::mem::take(&mut self.alarmed)
    }

    /// This process leaves in good order.
    pub(crate) fn goodbye(&mut self, port: &mut dyn Port) {
        for to in self.other_processes() {
            self.post(Letter::new(to, FrameHeader::new(FrameKind::Goodbye), &[]), port);
        }
    }

    /// A transport lost a process.
    pub(crate) fn lost(&mut self, process: Process, reason: Arc<str>, port: &mut dyn Port) {
        if self.gone.contains_key(&process) {
            return;
        }
        self.gone.insert(process, reason.clone());
        self.outbox.retain(|letter| letter.to != process);
        let host = self.host(process);
        self.raise(Fault::Lost { process, host, reason }, true, port);
    }

    /// A process left in good order: only calls that need it fail.
    pub(super) fn departed(&mut self, process: Process) {
        self.gone.entry(process).or_insert_with(|| "it left the job".into());
        self.outbox.retain(|letter| letter.to != process);
        self.settle_later(process);
    }

    pub(super) fn settle_later(&mut self, process: Process) {
        self.departures.push((process, self.now + GRACE));
    }

    /// Ends the calls that need a process which has left.
    fn settle(&mut self, process: Process, port: &mut dyn Port) {
        if self.operations.values().any(|operation| operation.needs(process)) {
            let reason = self.gone.get(&process).cloned().unwrap_or_else(|| "it left the job".into());
            self.raise(Fault::Lost { process, host: self.host(process), reason }, true, port);
        }
    }

    /// Another process says why it gives up.
    pub(super) fn aborted(
        &mut self,
        process: Process,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) {
        let Ok(report) = AbortReport::decode(payload) else {
            return self.expel(process, Breach("its abort report makes no sense"), port);
        };
        let fault = match (report.cause, report.ranks.first().copied()) {
            (AbortCause::PeerLost, Some(lost)) if lost != self.own => {
                Fault::Lost { process: lost, host: self.host(lost), reason: report.text.into() }
            }
            (AbortCause::TimedOut, _) => {
                let (name, arguments) = report.text.split_once(CALL).unwrap_or((&report.text, ""));
                Fault::TimedOut {
                    group: GroupId::of(header),
                    call: Call { name: name.into(), arguments: arguments.into(), sequence: report.sequence },
                    waited: Duration::from_millis(header.offset),
                    waiting_for: report.ranks.into(),
                }
            }
            _ => Fault::Aborted { process, reason: report.text.into() },
        };
        self.raise(fault, false, port);
    }

    /// A peer broke the protocol: it is cut off.
    pub(super) fn expel(&mut self, process: Process, Breach(what): Breach, port: &mut dyn Port) {
        port.expel(process);
        self.lost(process, format!("it broke the protocol: {what}").into(), port);
    }

    fn probe(&mut self, key: Key, port: &mut dyn Port) {
        let Some(operation) = self.operations.get_mut(&key) else { return };
        operation.probed = true;
        let begin = operation.begin.clone();
        let Some(group) = self.groups.get(&begin.group) else { return };
        let mut header = FrameHeader::new(FrameKind::Probe);
        begin.group.address(&mut header);
        header.source = group.rank as u32;
        let others: Vec<Process> = group.others().map(|(_, process)| process).collect();
        for to in others {
            self.post(Letter::new(to, header, &[]), port);
        }
    }

    fn time_out(&mut self, key: Key, now: Instant, port: &mut dyn Port) {
        let Some(operation) = self.operations.get(&key) else { return };
        let begin = operation.begin.clone();
        let mut missing: Vec<Rank> = Vec::new();
        if operation.is_collective()
            && let Some(group) = self.groups.get(&begin.group)
        {
            missing.extend(group.others().map(|(rank, _)| rank).filter(|rank| {
                // Silent, or not yet there.
                operation.answers[*rank].is_none_or(|answer| answer.calls <= begin.sequence && !answer.waits)
            }));
        }
        if missing.is_empty() {
            missing = operation.waiting_for();
            missing.sort_unstable();
            missing.dedup();
        }
        if operation.is_collective() {
            return self.raise_time_out(begin.group, operation.call(), now - begin.started, &missing, port);
        }
        // A message that nobody sends says nothing about the communicator.
        let error = crate::Error::TimedOut {
            call: operation.call(),
            waited: now - begin.started,
            waiting_for: missing.into(),
        };
        self.fail(key, error, port);
    }

    fn raise_time_out(
        &mut self,
        id: GroupId,
        call: Call,
        waited: Duration,
        missing: &[Rank],
        port: &mut dyn Port,
    ) {
        let Some(group) = self.groups.get(&id) else { return };
        let waiting_for = missing.iter().filter_map(|rank| group.members.get(*rank)).copied().collect();
        self.raise(Fault::TimedOut { group: id, call, waited, waiting_for }, true, port);
    }

    /// Ends the communicators that a cause ends, unless an earlier one has; tells the others.
    fn raise(&mut self, fault: Fault, tell: bool, port: &mut dyn Port) {
        let mut ended: Vec<GroupId> = Vec::new();
        for (id, group) in &mut self.groups {
            if group.fault.is_none() && fault.ends(*id, &group.members) {
                group.end(fault.clone());
                ended.push(*id);
            }
        }
        if self.faults.contains(&fault) {
            return;
        }
        tracing::warn!(process = self.own, ?fault, "giving up");
        if tell {
            let (header, payload) = self.report(&fault);
            for to in self.other_processes() {
                self.post(Letter::new(to, header, &payload), port);
            }
            self.alarmed = true;
        }
        self.faults.push(fault);
        let failing: Vec<Key> = self
            .operations
            .iter()
            .filter(|(_, operation)| ended.contains(&operation.begin.group))
            .map(|(key, _)| *key)
            .collect();
        for key in failing {
            let Some(id) = self.operations.get(&key).map(|operation| operation.begin.group) else { continue };
            if let Some(error) = self.fault(id) {
                self.fail(key, error, port);
            }
        }
    }

    fn report(&self, fault: &Fault) -> (FrameHeader, Vec<u8>) {
        let mut header = FrameHeader::new(FrameKind::Abort);
        let (cause, ranks, text) = match fault {
            Fault::Lost { process, reason, .. } => (AbortCause::PeerLost, vec![*process], reason.to_string()),
            Fault::TimedOut { group, call, waited, waiting_for } => {
                group.address(&mut header);
                header.sequence = call.sequence;
                header.offset = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                (AbortCause::TimedOut, waiting_for.to_vec(), format!("{}{CALL}{}", call.name, call.arguments))
            }
            Fault::Aborted { reason, .. } => (AbortCause::Aborted, Vec::new(), reason.to_string()),
        };
        let (communicator, sequence) = (header.communicator, header.sequence);
        (header, AbortReport { rank: self.own, cause, ranks, text, communicator, sequence }.encode())
    }

    fn other_processes(&self) -> Vec<Process> {
        (0..self.hosts.len() as Process)
            .filter(|process| *process != self.own && !self.gone.contains_key(process))
            .collect()
    }

    fn host(&self, process: Process) -> Arc<str> {
        self.hosts.get(process as usize).cloned().unwrap_or_else(|| "an unknown host".into())
    }
}

fn probe_time(deadline: Instant, begin: &Begin) -> Instant {
    let lead = begin.timeout.map_or(PROBE, |timeout| PROBE.min(timeout / 2));
    deadline.checked_sub(lead).unwrap_or(deadline)
}
