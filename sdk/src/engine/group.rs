//! The members of a communicator, and what is known of it before its calls are made here.

use super::message::{Envelope, Pattern};
use super::port::Process;
use super::{Fault, Key};
use crate::Rank;
use gradwire_schema::FrameHeader;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The identity of a communicator, equal on all its members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct GroupId(pub(crate) u64);

impl GroupId {
    pub(crate) fn of(header: &FrameHeader) -> Self {
        Self(u64::from(header.communicator) | u64::from(header.epoch) << 32)
    }

    pub(crate) fn address(self, header: &mut FrameHeader) {
        (header.communicator, header.epoch) = (self.0 as u32, (self.0 >> 32) as u32);
    }
}

/// How many collectives a communicator has called here: written by its calls, read when a peer asks.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    count: AtomicU64,
    /// None may be made any more: see [`Group::fault`].
    ended: AtomicBool,
}

impl Calls {
    /// The number of the next call; counts it.
    pub(crate) fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the communicator has ended, for calls that do not ask the engine before they begin.
    pub(crate) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
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
    /// Receives without a message, in the order they were posted.
    pub(crate) posted: VecDeque<(Key, Pattern)>,
    /// Messages without a receive, in the order they came.
    pub(crate) unexpected: VecDeque<Envelope>,
    /// Why every further call fails.
    pub(crate) fault: Option<Fault>,
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
            active: HashMap::new(),
            early: BTreeMap::new(),
            posted: VecDeque::new(),
            unexpected: VecDeque::new(),
            fault: None,
        }
    }

    /// Every further call fails.
    pub(crate) fn end(&mut self, fault: Fault) {
        self.calls.ended.store(true, Ordering::Relaxed);
        self.fault = Some(fault);
    }

    pub(crate) fn rank_of(&self, process: Process) -> Option<Rank> {
        self.ranks.get(&process).copied()
    }

    /// The members but ourselves.
    pub(crate) fn others(&self) -> impl Iterator<Item = (Rank, Process)> {
        self.members.iter().copied().enumerate().filter(|(rank, _)| *rank != self.rank)
    }
}
