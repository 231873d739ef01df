//! Processes that are gone, and the operations that cannot do without them.
//!
//! That a process has gone ends nothing by itself: it may have done its part in all calls that are under way. A call
//! fails when it comes to need the process: when something is still to come from it, when it was begun after the process
//! had gone, or when another rank has not begun it yet, so that the process cannot have completed it. Of all that are gone
//! and needed the one is blamed that left first.

use super::group::{Group, GroupId};
use super::operation::Operation;
use super::port::{Port, Process};
use super::{Engine, Key, Letter};
use crate::Rank;
use gradwire_schema::{FrameHeader, FrameKind};
use rustc_hash::FxHashMap as HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long puts of a process that has left may take to arrive, and how long a call with such a member goes on before the
/// other members are asked whether they have begun it.
const GRACE: Duration = Duration::from_millis(100);

/// What is known of processes that are gone.
#[derive(Debug, Default)]
pub(super) struct Departures {
    gone: HashMap<Process, Gone>,
    /// When the operations are to be looked at again.
    due: Option<Instant>,
}

#[derive(Debug)]
struct Gone {
    /// How many had left before.
    order: usize,
    reason: Arc<str>,
    /// Before that something of it may still be on its way.
    counts_from: Instant,
}

impl Departures {
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    pub(super) fn contains(&self, process: Process) -> bool {
        self.gone.contains_key(&process)
    }

    /// Takes a process for gone; what was said first is kept as the reason.
    fn insert(&mut self, process: Process, reason: Arc<str>, counts_from: Instant) {
        let order = self.gone.len();
        let gone = self.gone.entry(process).or_insert(Gone { order, reason, counts_from });
        gone.counts_from = gone.counts_from.min(counts_from);
    }

    /// The one of them that left first.
    fn first(&self, processes: impl IntoIterator<Item = Process>) -> Option<Process> {
        let gone =
            processes.into_iter().filter_map(|process| Some((self.gone.get(&process)?.order, process)));
        gone.min().map(|(_, process)| process)
    }

    /// When the first of them counts.
    fn count_from(&self, processes: impl IntoIterator<Item = Process>) -> Option<Instant> {
        processes.into_iter().filter_map(|process| Some(self.gone.get(&process)?.counts_from)).min()
    }

    /// When the next of them counts, or operations are to be looked at again.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let counts = self.gone.values().map(|gone| gone.counts_from).filter(|at| *at > now);
        counts.chain(self.due).min()
    }

    fn look_again(&mut self, at: Instant) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

/// What a look at an operation came to.
enum Verdict {
    /// It cannot end.
    Lost(Process),
    /// It may be that another member has not begun it.
    Doubtful,
    /// It is to be looked at again.
    Later(Instant),
}

impl Engine {
    /// Whether any process has left.
    pub(crate) fn anybody_left(&self) -> bool {
        !self.departures.is_empty()
    }

    /// A call outside of the engine needs each of these ranks: if one has left, the call is given up.
    pub(crate) fn check_presence(&mut self, id: GroupId, sequence: u64, ranks: &[Rank], port: &mut dyn Port) {
        let Some(group) = self.groups.get(&id) else { return };
        let needed = || ranks.iter().filter_map(|rank| group.members.get(*rank)).copied();
        if self.departures.count_from(needed()).is_some_and(|at| at <= self.now)
            && let Some(process) = self.departures.first(needed())
        {
            self.lose(id, process, sequence, port);
        }
    }

    /// This process leaves in good order.
    pub(crate) fn goodbye(&mut self, port: &mut dyn Port) {
        for to in self.other_processes() {
            self.post(Letter::new(to, FrameHeader::new(FrameKind::Goodbye), &[]), port);
        }
    }

    /// A transport lost a process: nothing more of it will come.
    pub(crate) fn lost(&mut self, process: Process, reason: Arc<str>, port: &mut dyn Port) {
        self.depart(process, reason, self.now);
        self.unlock_all_of(process, port);
        self.settle(port);
    }

    /// A process left in good order.
    pub(super) fn departed(&mut self, process: Process) {
        let counts_from = self.now + GRACE;
        self.depart(process, "it left the job".into(), counts_from);
        self.departures.look_again(counts_from);
    }

    fn depart(&mut self, process: Process, reason: Arc<str>, counts_from: Instant) {
        self.departures.insert(process, reason, counts_from);
        self.outbox.retain(|letter| letter.to != process);
    }

    /// Why a process is gone.
    pub(super) fn reason(&self, process: Process) -> Arc<str> {
        self.departures
            .gone
            .get(&process)
            .map_or_else(|| "it left the job".into(), |gone| gone.reason.clone())
    }

    /// The member of a group that left first.
    pub(super) fn first_to_leave(&self, group: &Group) -> Option<Process> {
        self.departures.first(group.others().map(|(_, process)| process))
    }

    /// Ends the calls that need a process which is gone.
    pub(super) fn settle(&mut self, port: &mut dyn Port) {
        if self.departures.is_empty() {
            return;
        }
        self.departures.due = None;
        let keys: Vec<Key> = self.operations.keys().copied().collect();
        for key in keys {
            let Some(operation) = self.operations.get(&key) else { continue };
            match self.judge(operation, port) {
                None => {}
                Some(Verdict::Later(at)) => self.departures.look_again(at),
                Some(Verdict::Lost(process)) => {
                    let (id, from) = (operation.begin.group, self.given_up_from(operation));
                    self.lose(id, process, from, port);
                }
                Some(Verdict::Doubtful) => {
                    let (begin, operation) = (operation.begin.clone(), self.operations.get_mut(&key));
                    operation.into_iter().for_each(|operation| operation.asked = true);
                    // The mark comes back with the answer, which so cannot be mistaken for an older one.
                    self.ask(&begin, begin.sequence + 1, port);
                }
            }
        }
    }

    fn judge(&self, operation: &Operation, port: &dyn Port) -> Option<Verdict> {
        let group = self.groups.get(&operation.begin.group)?;
        let gone = || group.others().filter(|(_, process)| self.departures.contains(*process));
        let needed = || gone().filter(|(rank, _)| operation.needs(*rank, port)).map(|(_, process)| process);
        if let Some(at) = self.departures.count_from(needed()) {
            if at > self.now {
                return Some(Verdict::Later(at));
            }
            // A member that nobody has heard of in this call, and that left earlier, is the earlier cause.
            let unheard =
                gone().filter(|(rank, _)| operation.has_not_heard(*rank)).map(|(_, process)| process);
            return self.departures.first(needed().chain(unheard)).map(Verdict::Lost);
        }
        if !operation.is_agreeing() || operation.asked {
            return None;
        }
        let at = self.departures.count_from(gone().map(|(_, process)| process))? + GRACE;
        Some(if at > self.now { Verdict::Later(at) } else { Verdict::Doubtful })
    }

    /// From which call on this rank gives up where an operation fails.
    pub(super) fn given_up_from(&self, operation: &Operation) -> u64 {
        if operation.is_collective() {
            return operation.begin.sequence;
        }
        self.groups.get(&operation.begin.group).map_or(0, |group| group.calls.count())
    }

    /// A member that was asked whether it has begun a call has answered how many it has made.
    pub(super) fn vouched(&mut self, id: GroupId, sequence: u64, calls: u64, port: &mut dyn Port) {
        let Some(group) = self.groups.get(&id) else { return };
        let operation = group.active.get(&sequence).and_then(|key| self.operations.get(key));
        if calls <= sequence
            && operation.is_some_and(|operation| operation.asked && operation.is_agreeing())
            && let Some(process) = self.first_to_leave(group)
        {
            // It had left when we asked, and the call cannot have been complete then.
            self.lose(id, process, sequence, port);
        }
    }

    /// All that are there to be told something.
    pub(super) fn other_processes(&self) -> Vec<Process> {
        let all = 0..self.hosts.len() as Process;
        all.filter(|process| *process != self.own && !self.departures.contains(*process)).collect()
    }
}
