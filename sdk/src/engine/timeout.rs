//! Deadlines: the peers are asked where they are, then the call is given up.

use super::fault::Fault;
use super::operation::Operation;
use super::port::{Port, Process};
use super::{Begin, Engine, Key, Letter};
use crate::{Call, Rank};
use gradwire_schema::FrameKind;
use std::time::{Duration, Instant};

/// How long before a deadline the peers are asked where they are, at most.
const PROBE: Duration = Duration::from_millis(500);

impl Engine {
    /// When [`tick`](Self::tick) must be called next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let first = self.deadlines.first().map(|(at, _)| *at);
        first.into_iter().chain(self.departures.deadline(self.now)).min()
    }

    /// Asks and ends operations whose time has come. Everything that has arrived was looked at before.
    pub(crate) fn tick(&mut self, now: Instant, port: &mut dyn Port) {
        self.settle(port);
        while let Some(&(at, key)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            let Some(operation) = self.operations.get_mut(&key) else { continue };
            if operation.probed {
                self.time_out(key, now, port);
            } else {
                operation.probed = true;
                let begin = operation.begin.clone();
                self.deadlines.extend(operation.due().map(|due| (due, key)));
                self.ask(&begin, 0, port);
            }
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
        let Some(group) = self.groups.get(&begin.group) else { return };
        let call = group.calls.call(&begin.signature, begin.sequence);
        self.give_up_late(begin, call, now, waiting_for, port);
    }

    /// Asks the other members where they are. `mark` comes back with the answers.
    pub(super) fn ask(&mut self, begin: &Begin, mark: u64, port: &mut dyn Port) {
        let Some(group) = self.groups.get(&begin.group) else { return };
        let mut header = begin.group.header(FrameKind::Probe, group.rank);
        header.sequence = mark;
        let others: Vec<Process> = group.others().map(|(_, process)| process).collect();
        for to in others.into_iter().filter(|to| !self.departures.contains(*to)).collect::<Vec<_>>() {
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
        let call = operation.call();
        if operation.is_collective() {
            return self.give_up_late(&begin, call, now, &missing, port);
        }
        // A message that nobody sends says nothing about the communicator.
        let waited = now - begin.started;
        self.fail(key, crate::Error::TimedOut { call, waited, waiting_for: missing.into() }, port);
    }

    fn give_up_late(
        &mut self,
        begin: &Begin,
        call: Call,
        now: Instant,
        missing: &[Rank],
        port: &mut dyn Port,
    ) {
        let Some(group) = self.groups.get(&begin.group) else { return };
        let waiting_for = missing.iter().filter_map(|rank| group.members.get(*rank)).copied().collect();
        // Whoever is late would not meet us in an earlier call either.
        self.give_up(
            begin.group,
            Fault::TimedOut { call, waited: now - begin.started, waiting_for },
            0,
            port,
        );
    }
}

impl Operation {
    /// When it is to be looked at: first the peers are asked about it, then it is given up.
    pub(super) fn due(&self) -> Option<Instant> {
        let deadline = self.deadline?;
        let lead = self.begin.timeout.map_or(PROBE, |timeout| PROBE.min(timeout / 2));
        if self.probed { Some(deadline) } else { Some(deadline.checked_sub(lead).unwrap_or(deadline)) }
    }
}
