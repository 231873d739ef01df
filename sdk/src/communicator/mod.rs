//! The communicator: a group of ranks that call collectives together.

mod call;
mod collective;
mod create;
mod exchange;
mod gradient;
mod group;
mod grouped;
mod memory;
mod neighbours;
mod per_rank;
mod point_to_point;
mod probe;
mod reproducible;
mod scan;
mod sparse;
mod split;
mod start;
mod start_message;
mod two_parts;
mod varying;

pub(crate) use call::{Collective, Counted, mismatch};
pub(crate) use gradient::{Fused, Way};
pub use group::{Group, Relation};
pub use grouped::Grouped;
pub use per_rank::PerRank;
pub use point_to_point::{Received, Source, Tag};
pub use probe::Message;
pub use sparse::Sparse;
pub(crate) use sparse::fold as fold_sparse;
pub(crate) use start::{Conclude, Place, Start};
pub(crate) use two_parts::{Own, Telling};

use crate::buffer::{Buffer, is_child};
use crate::direct::Membership;
use crate::engine::{Calls, GroupId, Process};
use crate::job::Job;
use crate::plan::Determinism;
use crate::{Element, Rank, Result};
use gradwire_schema::{Equivalence, Reduction};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What [`Communicator::buffered_send`] may keep, unless the program says otherwise.
const SEND_BUFFER: usize = 16 << 20;

/// A group of ranks that call collectives together, in the same order.
///
/// A communicator may be sent to another thread, but not shared: two threads cannot interleave collectives on one. A
/// [`duplicate`](Self::duplicate) for each thread is independent of the others.
///
/// ```
/// fn sent<T: Send>() {}
/// sent::<gradwire::Communicator>();
/// sent::<gradwire::Request<gradwire::Buffer<f32>>>();
/// ```
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<gradwire::Communicator>();
/// ```
///
/// Every call has a deadline, the [`timeout`](Self::timeout). All ranks must make the same calls: the
/// signatures are compared before a byte of a buffer is written, and where they differ all ranks get
/// [`Error::Mismatch`](crate::Error::Mismatch), their buffers are untouched, and the communicator remains usable. After any
/// other error but `Misuse` it only repeats the first cause.
pub struct Communicator {
    job: Arc<Job>,
    id: GroupId,
    members: Arc<[Process]>,
    rank: Rank,
    calls: Arc<Calls>,
    timeout: Cell<Option<Duration>>,
    determinism: Cell<Determinism>,
    /// Bytes that buffered sends may have together.
    send_buffer: Cell<usize>,
    /// Present where all members share memory.
    board: RefCell<Option<Membership>>,
    /// Fused tensors, kept for the next step.
    fused: RefCell<Vec<Vec<u8>>>,
    /// How often its members alone have made a communicator of a group, by the group's digest.
    created: RefCell<HashMap<u64, u64>>,
}

impl Communicator {
    /// Makes a communicator; all members do it together, within `timeout`.
    pub(crate) fn new(
        job: Arc<Job>,
        id: GroupId,
        members: Arc<[Process]>,
        rank: Rank,
        timeout: Option<Duration>,
    ) -> Result<Self> {
        let calls = Arc::new(Calls::default());
        job.add_group(id, members.clone(), rank, calls.clone());
        let communicator = Self {
            job,
            id,
            members,
            rank,
            calls,
            timeout: Cell::new(timeout),
            determinism: Cell::default(),
            send_buffer: Cell::new(SEND_BUFFER),
            board: RefCell::default(),
            fused: RefCell::default(),
            created: RefCell::default(),
        };
        let board = communicator.share()?;
        communicator.board.replace(board);
        communicator.calls.end_set_up();
        Ok(communicator)
    }

    /// A communicator of one rank, without a launcher and without a network.
    ///
    /// # Errors
    ///
    /// [`Error::System`](crate::Error::System) when the system refuses a descriptor.
    pub fn single() -> Result<Self> {
        Job::single()?.world()
    }

    /// The number of this rank, below [`size`](Self::size).
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// What [`set_name`](Self::set_name) said; `None` before.
    #[must_use]
    pub fn name(&self) -> Option<Arc<str>> {
        self.calls.name()
    }

    /// Names the communicator, for the errors of its calls. Each rank may give it a name of its own.
    pub fn set_name(&self, name: impl Into<Arc<str>>) {
        self.calls.set_name(name.into());
    }

    /// The number of this rank among those of its host.
    #[must_use]
    pub fn local_rank(&self) -> usize {
        self.local().take_while(|rank| *rank != self.rank).count()
    }

    /// How many ranks of the communicator run on this rank's host.
    #[must_use]
    pub fn local_size(&self) -> usize {
        self.local().count()
    }

    /// The name of the host that a rank runs on; `None` for ranks that do not exist.
    #[must_use]
    pub fn host(&self, rank: Rank) -> Option<&str> {
        self.members.get(rank).map(|process| self.job.host(*process))
    }

    /// What leads to a rank: `shm`, `tcp`, ...; `self` for this one, `None` for ranks that do not exist.
    #[must_use]
    pub fn path(&self, rank: Rank) -> Option<&'static str> {
        self.members.get(rank).map(|process| self.job.path(*process))
    }

    /// How long a call may take before it ends with [`Error::TimedOut`](crate::Error::TimedOut). `None`: for ever.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout.get()
    }

    /// Changes the deadline of the calls to come.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.timeout.set(timeout);
    }

    /// How much may change before the bits of results do.
    #[must_use]
    pub fn determinism(&self) -> Determinism {
        self.determinism.get()
    }

    /// Asks for more or less determinism. All ranks must ask for the same before the same call.
    pub fn set_determinism(&self, determinism: Determinism) {
        self.determinism.set(determinism);
    }

    /// Why an all_reduce of `count` elements of `T` is carried out as it is between hosts: a table of the algorithms with
    /// their modelled costs.
    #[must_use]
    pub fn explain<T: Equivalence, R: Reduction<T>>(&self, count: usize, reduction: R) -> String {
        let operation = call::Operation::new::<T, R>(&reduction);
        let size = T::PACKED_SIZE.max(1);
        self.job.explain(&self.shape(crate::plan::Collective::AllReduce, count, size, None, Some(&operation)))
    }

    /// Zeroed memory for `count` elements that other ranks of the host can reach without a copy; ordinary memory where no
    /// rank shares a host. A call of this rank alone.
    ///
    /// # Errors
    ///
    /// [`Error::System`](crate::Error::System) when there is not enough memory, or no descriptor left.
    pub fn allocate<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        self.job.allocate(count)
    }

    pub(crate) fn id(&self) -> GroupId {
        self.id
    }

    pub(crate) fn members(&self) -> &[Process] {
        &self.members
    }

    /// How many collectives have been called.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.count()
    }

    /// Whether a call fails before it begins.
    pub(crate) fn has_ended(&self, sequence: u64) -> bool {
        self.calls.have_ended(sequence) || is_child()
    }

    /// Whether collectives are under way in the engine.
    pub(crate) fn has_calls_under_way(&self) -> bool {
        self.calls.are_under_way()
    }

    /// The number of a call as users count.
    pub(crate) fn number(&self, sequence: u64) -> u64 {
        self.calls.number(sequence)
    }

    /// What the members share, if they share memory.
    pub(crate) fn board(&self) -> &RefCell<Option<Membership>> {
        &self.board
    }

    pub(crate) fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// A handle by which any thread can end the calls of all ranks.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle { job: self.job.clone() }
    }

    fn local(&self) -> impl Iterator<Item = Rank> {
        let own = self.members[self.rank];
        (0..self.size()).filter(move |rank| self.job.same_host(own, self.members[*rank]))
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if is_child() {
            // The boards are the parent's.
            std::mem::forget(self.board.take());
            return;
        }
        if let Some(board) = self.board.take() {
            self.unshare(board);
        }
        self.job.remove_group(self.id);
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator")
            .field("name", &self.name())
            .field("rank", &self.rank)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// Ends the calls of all ranks, from any thread.
#[derive(Clone)]
pub struct AbortHandle {
    job: Arc<Job>,
}

impl AbortHandle {
    /// Every call of every rank, on every communicator of the job, ends with
    /// [`Error::Aborted`](crate::Error::Aborted) and says `reason`.
    pub fn abort(&self, reason: &str) {
        self.job.abort(reason);
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
