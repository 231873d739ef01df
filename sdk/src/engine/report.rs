//! Giving up: the first cause wins, and everybody is told before the caller hears of it.
//!
//! Whoever gives up tells all other members, also where it has heard of the cause from one of them. A process that ends
//! as soon as its call has failed has so told everyone why before its connections close, and is not blamed itself.

use super::fault::Fault;
use super::group::{Ending, GroupId};
use super::port::{Port, Process};
use super::transfer::Breach;
use super::{Engine, Key, Letter};
use crate::Call;
use gradwire_schema::control::{AbortCause, AbortReport};
use gradwire_schema::{FrameHeader, FrameKind};
use std::sync::Arc;
use std::time::Duration;

/// Between the name and the arguments of a call, in the text of a report.
const CALL: &str = ": ";

/// Reports that are kept for communicators which do not exist here yet.
const MAX_EARLY: usize = 1024;

impl Engine {
    /// This process asks everyone to stop.
    pub(crate) fn abort(&mut self, reason: &str, port: &mut dyn Port) {
        self.stop(Fault::Aborted { process: self.own, reason: reason.into() }, port);
    }

    /// A process wrote into shared memory what no correct process writes.
    pub(crate) fn breach(&mut self, process: Process, what: &'static str, port: &mut dyn Port) {
        self.expel(process, Breach(what), port);
    }

    /// A peer broke the protocol: it is cut off.
    pub(super) fn expel(&mut self, process: Process, Breach(what): Breach, port: &mut dyn Port) {
        port.expel(process);
        self.lost(process, format!("it broke the protocol: {what}").into(), port);
    }

    /// Whether something was given up, since the last call, of which others are being told.
    pub(crate) fn take_alarm(&mut self) -> bool {
        std::mem::take(&mut self.alarmed)
    }

    /// Gives up the calls of a communicator from one on, because of a member that is gone.
    pub(super) fn lose(&mut self, id: GroupId, process: Process, from: u64, port: &mut dyn Port) {
        let fault = Fault::Lost { process, host: self.host(process), reason: self.reason(process) };
        self.give_up(id, fault, from, port);
    }

    /// Gives up the calls of a communicator from one on, unless that was done before, and tells the other members. An
    /// earlier cause is kept.
    pub(super) fn give_up(&mut self, id: GroupId, fault: Fault, from: u64, port: &mut dyn Port) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        match &group.ending {
            None => {
                tracing::warn!(process = self.own, ?fault, "giving up");
                group.end(Ending { fault, from });
            }
            Some(ending) if from < ending.from => {
                let fault = ending.fault.clone();
                group.end(Ending { fault, from });
            }
            Some(_) => return,
        }
        self.fail_from(id, from, port);
        let Some(group) = self.groups.get(&id) else { return };
        if let Some(Ending { fault, from }) = &group.ending {
            let (header, payload) = self.report(fault, id, *from);
            let members: Vec<Process> = group.others().map(|(_, process)| process).collect();
            self.tell(&members, header, &payload, port);
        }
    }

    /// Gives up all calls of all communicators, unless that was done before.
    fn stop(&mut self, fault: Fault, port: &mut dyn Port) {
        if self.stopped.is_some() {
            return;
        }
        tracing::warn!(process = self.own, ?fault, "giving up");
        self.stopped = Some(fault.clone());
        let ids: Vec<GroupId> = self.groups.keys().copied().collect();
        for id in ids {
            if let Some(group) = self.groups.get_mut(&id) {
                let fault = group.ending.as_ref().map_or(&fault, |ending| &ending.fault).clone();
                group.end(Ending { fault, from: 0 });
            }
            self.fail_from(id, 0, port);
        }
        let (header, payload) = self.report(&fault, GroupId(0), 0);
        self.tell(&self.other_processes(), header, &payload, port);
    }

    /// Ends what is under way on a communicator, but for collectives before `from`.
    fn fail_from(&mut self, id: GroupId, from: u64, port: &mut dyn Port) {
        let operations = self.operations.iter().filter(|(_, operation)| operation.begin.group == id);
        let failing: Vec<Key> = operations
            .filter(|(_, operation)| !operation.is_collective() || operation.begin.sequence >= from)
            .map(|(key, _)| *key)
            .collect();
        for key in failing {
            if let Some(error) = self.fault(id, from) {
                self.fail(key, error, port);
            }
        }
    }

    fn tell(&mut self, processes: &[Process], header: FrameHeader, payload: &[u8], port: &mut dyn Port) {
        for to in processes
            .iter()
            .filter(|process| !self.departures.contains(**process))
            .copied()
            .collect::<Vec<_>>()
        {
            self.post(Letter::new(to, header, payload), port);
        }
        self.alarmed = true;
    }

    /// Another process says why it gives up.
    pub(super) fn aborted(
        &mut self,
        process: Process,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) {
        let known = |report: &AbortReport| (report.rank as usize) < self.hosts.len();
        let Some(report) = AbortReport::decode(payload).ok().filter(known) else {
            return self.expel(process, Breach("its abort report makes no sense"), port);
        };
        let id = GroupId::of(header);
        match (report.cause, report.ranks.first().copied()) {
            (AbortCause::PeerLost, Some(lost)) => {
                let fault = Fault::Lost { process: lost, host: self.host(lost), reason: report.text.into() };
                self.reported(process, id, fault, header.sequence, port);
            }
            (AbortCause::TimedOut, _) => {
                let (name, arguments) = report.text.split_once(CALL).unwrap_or((&report.text, ""));
                let fault = Fault::TimedOut {
                    call: Call {
                        name: name.into(),
                        arguments: arguments.into(),
                        sequence: report.sequence,
                        communicator: None,
                    },
                    waited: Duration::from_millis(header.offset),
                    waiting_for: report.ranks.into(),
                };
                self.reported(process, id, fault, header.sequence, port);
            }
            _ => self.stop(Fault::Aborted { process: report.rank, reason: report.text.into() }, port),
        }
    }

    /// A process has given up calls of one communicator.
    fn reported(&mut self, process: Process, id: GroupId, fault: Fault, from: u64, port: &mut dyn Port) {
        match self.groups.get(&id) {
            Some(group) if group.rank_of(process).is_none() => {
                self.expel(process, Breach("it gave up calls of a communicator that is not its own"), port);
            }
            Some(_) => self.give_up(id, fault, from, port),
            None if self.dropped.contains(id) => {}
            None if self.early_reports.len() < MAX_EARLY => self.early_reports.push((id, fault, from)),
            // The loss of a process is seen by itself, and a deadline passes here, too.
            None => {}
        }
    }

    fn report(&self, fault: &Fault, id: GroupId, from: u64) -> (FrameHeader, Vec<u8>) {
        let mut header = FrameHeader::new(FrameKind::Abort);
        id.address(&mut header);
        header.sequence = from;
        let mut report = AbortReport {
            rank: self.own,
            cause: AbortCause::PeerLost,
            ranks: Vec::new(),
            text: String::new(),
            communicator: header.communicator,
            sequence: from,
        };
        match fault {
            Fault::Lost { process, reason, .. } => {
                (report.ranks, report.text) = (vec![*process], reason.to_string());
            }
            Fault::TimedOut { call, waited, waiting_for } => {
                header.offset = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                report.cause = AbortCause::TimedOut;
                (report.ranks, report.sequence) = (waiting_for.to_vec(), call.sequence);
                report.text = format!("{}{CALL}{}", call.name, call.arguments);
            }
            Fault::Aborted { process, reason } => {
                (report.rank, report.cause, report.text) =
                    (*process, AbortCause::Aborted, reason.to_string());
            }
        }
        (header, report.encode())
    }

    pub(super) fn host(&self, process: Process) -> Arc<str> {
        self.hosts.get(process as usize).cloned().unwrap_or_else(|| "an unknown host".into())
    }
}
