//! The ranks of one MPI communicator, as places for endpoints.

use super::gate;
use super::{Mpi, address::Place};
use mpi::environment::{Threading, threading_support};
use mpi::ffi;
use mpi::traits::{AsRaw, Communicator, Root};
use std::fmt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The least that every MPI library takes for a tag (MPI 4.0, 9.1.2).
const LARGEST_TAG: i32 = 32767;

/// The communicators of all networks of this process.
static ALL: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

#[derive(Clone, Copy)]
struct Handle(ffi::MPI_Comm);

// SAFETY: the handle of a communicator is tied to no thread.
unsafe impl Send for Handle {}

/// The communicators of all networks.
pub(super) fn all() -> Vec<ffi::MPI_Comm> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|handle| handle.0).collect()
}

/// A duplicate of an MPI communicator, on which only endpoints of Gradwire speak.
pub struct Network {
    communicator: ffi::MPI_Comm,
    rank: i32,
    size: i32,
    /// What tells it from others: agreed on by its ranks.
    number: u64,
    next_tag: AtomicI32,
}

/// Why there is no network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The transport is driven by a thread of its own beside those of the program.
    #[error(
        "the MPI library was initialised for calls from one thread: start it by \
         mpi::initialize_with_threading(Threading::Multiple)"
    )]
    Threads,
    /// The library has no thread support that would do, or refused a call.
    #[error("{context}: MPI's error {code}")]
    Mpi {
        /// What was tried.
        context: &'static str,
        /// What it returned.
        code: i32,
    },
    /// More endpoints than there are tags.
    #[error("{LARGEST_TAG} endpoints have been made of one MPI communicator: make another one")]
    Exhausted,
}

impl Network {
    /// A network of the ranks of `world`. All of them call it: `world` is duplicated. The duplicate stays until MPI is
    /// finalized.
    ///
    /// # Errors
    ///
    /// See [`NetworkError`].
    pub fn of(world: &impl Communicator) -> Result<Arc<Self>, NetworkError> {
        if threading_support() != Threading::Multiple {
            return Err(NetworkError::Threads);
        }
        let failed = |context| move |code| NetworkError::Mpi { context, code };
        gate::open().map_err(failed("MPI_Comm_set_attr"))?;
        let duplicate = world.duplicate();
        // Errors end a peer, not the process.
        // SAFETY: the communicator is there, and so is the handler, which is MPI's own.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(duplicate.as_raw(), ffi::RSMPI_ERRORS_RETURN) };
        if code != 0 {
            return Err(NetworkError::Mpi { context: "MPI_Comm_set_errhandler", code });
        }
        let mut number = getrandom::u64().map_err(|error| NetworkError::Mpi {
            context: "a random number",
            code: error.raw_os_error().unwrap_or_default(),
        })?;
        duplicate.process_at_rank(0).broadcast_into(&mut number);
        let network = Self {
            communicator: duplicate.as_raw(),
            rank: duplicate.rank(),
            size: duplicate.size(),
            number,
            next_tag: AtomicI32::new(0),
        };
        // To free it is a call of all ranks, for which nobody waits.
        std::mem::forget(duplicate);
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Handle(network.communicator));
        Ok(Arc::new(network))
    }

    /// An endpoint on this rank.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Exhausted`]: their tags are never used again.
    pub fn endpoint(self: &Arc<Self>) -> Result<Mpi, NetworkError> {
        let next = |tag| (tag <= LARGEST_TAG).then_some(tag + 1);
        let tag = self.next_tag.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let tag = tag.map_err(|_| NetworkError::Exhausted)?;
        Ok(Mpi::new(self.clone(), Place { rank: self.rank, tag }))
    }

    pub(super) fn raw(&self) -> ffi::MPI_Comm {
        self.communicator
    }

    pub(super) fn size(&self) -> i32 {
        self.size
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

// SAFETY: the handle of a communicator that stays until MPI is finalized, tied to no thread: `of` made sure that MPI allows
// its calls on all threads.
unsafe impl Send for Network {}
// SAFETY: as above; the handle is not changed.
unsafe impl Sync for Network {}
