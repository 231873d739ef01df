//! The members of a communicator, and what is known of it before its calls are made here.

use super::message::{Expected, Lane, Mailbox, Shelf};
use super::port::Process;
use super::{Fault, Key, call};
use crate::{Call, Rank};
use gradwire_schema::{CallSignature, FrameHeader, FrameKind};
use rustc_hash::FxHashMap as HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The identity of a communicator, equal on all its members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct GroupId(pub(crate) u64);

impl GroupId {
    pub(crate) fn of(header: &FrameHeader) -> Self {
        Self(u64::from(header.communicator) | u64::from(header.epoch) << 32)
    }

    /// The header of a frame of its rank `source`.
    pub(crate) fn header(self, kind: FrameKind, source: Rank) -> FrameHeader {
        let mut header = FrameHeader::new(kind);
        self.address(&mut header);
        header.source = source as u32;
        header
    }

    pub(crate) fn address(self, header: &mut FrameHeader) {
        (header.communicator, header.epoch) = (self.0 as u32, (self.0 >> 32) as u32);
    }
}

/// What a communicator and the engine both know of it: how many collectives it has called here, written by its calls
/// and read when a peer asks, and its name.
#[derive(Debug)]
pub(crate) struct Calls {
    count: AtomicU64,
    /// The first calls, in which the members made the communicator: users do not count them.
    set_up: AtomicU64,
    /// None from this one on may be made any more: see [`Group::ending`].
    ended_from: AtomicU64,
    name: Mutex<Option<Arc<str>>>,
    /// Collectives under way in the engine.
    under_way: AtomicUsize,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            set_up: AtomicU64::new(0),
            ended_from: AtomicU64::new(u64::MAX),
            name: Mutex::default(),
            under_way: AtomicUsize::new(0),
        }
    }
}

impl Calls {
    /// The number of the next call; counts it.
    pub(crate) fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether a call may not be made any more, for calls that do not ask the engine before they begin.
    pub(crate) fn have_ended(&self, sequence: u64) -> bool {
        sequence >= self.ended_from.load(Ordering::Relaxed)
    }

    /// Whether collectives are under way in the engine.
    pub(crate) fn are_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    /// The communicator is made: what users call is counted from here.
    pub(crate) fn end_set_up(&self) {
        self.set_up.store(self.count(), Ordering::Relaxed);
    }

    /// A call, as messages name it.
    pub(crate) fn call(&self, signature: &CallSignature, sequence: u64) -> Call {
        call(signature, self.number(sequence))
    }

    /// The number of a call as users count.
    pub(crate) fn number(&self, sequence: u64) -> u64 {
        sequence.saturating_sub(self.set_up.load(Ordering::Relaxed))
    }

    /// The user's name of the communicator.
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_name(&self, name: Arc<str>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }
}

/// A communicator, as the engine knows it.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) members: Arc<[Process]>,
    pub(crate) rank: Rank,
    pub(crate) calls: Arc<Calls>,
    ranks: HashMap<Process, Rank>,
    /// Collectives below this number have been begun in the engine; `calls` runs ahead of it while a call is being made.
    pub(crate) begun: u64,
    /// Collectives under way, by sequence number.
    pub(crate) active: HashMap<u64, Key>,
    /// Frames of calls that have not been made here.
    pub(crate) early: BTreeMap<u64, Vec<(Process, FrameHeader, Vec<u8>)>>,
    /// Messages, and who wants them.
    pub(crate) mailbox: Mailbox,
    /// The receive that waits without being an operation: a communicator has one caller.
    pub(crate) expected: Option<Expected>,
    /// The messages to each rank.
    pub(crate) lanes: HashMap<Rank, Lane>,
    /// The messages of each rank.
    pub(crate) shelves: HashMap<Rank, Shelf>,
    /// Bytes of buffered sends under way.
    pub(crate) buffered: usize,
    /// Dropped here; it stays while buffered sends are under way.
    pub(crate) dropped: bool,
    /// Why calls fail.
    pub(crate) ending: Option<Ending>,
}

/// The end of a communicator.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) fault: Fault,
    /// The first collective that fails. Those before it need nobody who has given up.
    pub(crate) from: u64,
}

impl Group {
    pub(crate) fn new(members: Arc<[Process]>, rank: Rank, calls: Arc<Calls>) -> Self {
        let ranks = members.iter().enumerate().map(|(rank, process)| (*process, rank)).collect();
        Self {
            members,
            rank,
            calls,
            ranks,
            begun: 0,
            active: HashMap::default(),
            early: BTreeMap::new(),
            mailbox: Mailbox::default(),
            expected: None,
            lanes: HashMap::default(),
            shelves: HashMap::default(),
            buffered: 0,
            dropped: false,
            ending: None,
        }
    }

    /// Whether calls on it may begin.
    pub(crate) fn is_sound(&self) -> bool {
        self.ending.is_none() && !self.dropped
    }

    pub(crate) fn end(&mut self, ending: Ending) {
        self.calls.ended_from.store(ending.from, Ordering::Relaxed);
        self.ending = Some(ending);
    }

    /// A collective is under way from now on.
    pub(crate) fn activate(&mut self, sequence: u64, key: Key) {
        self.active.insert(sequence, key);
        self.calls.under_way.store(self.active.len(), Ordering::Relaxed);
    }

    /// An operation has ended, perhaps a collective.
    pub(crate) fn deactivate(&mut self, sequence: u64, key: Key) {
        // By its key: it no longer shows whether it was a collective.
        if self.active.get(&sequence) == Some(&key) {
            self.active.remove(&sequence);
            self.calls.under_way.store(self.active.len(), Ordering::Relaxed);
        }
    }

    pub(crate) fn rank_of(&self, process: Process) -> Option<Rank> {
        self.ranks.get(&process).copied()
    }

    /// The members but ourselves.
    pub(crate) fn others(&self) -> impl Iterator<Item = (Rank, Process)> {
        self.members.iter().copied().enumerate().filter(|(rank, _)| *rank != self.rank)
    }
}

/// Communicators that were dropped lately. What peers still send to them is for nobody, and must not be kept for a
/// communicator to come. Frames follow a drop closely: those that were dropped long ago are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Dropped(VecDeque<GroupId>);

impl Dropped {
    const REMEMBERED: usize = 4096;

    pub(crate) fn insert(&mut self, id: GroupId) {
        if self.0.len() == Self::REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    pub(crate) fn contains(&self, id: GroupId) -> bool {
        self.0.contains(&id)
    }
}
