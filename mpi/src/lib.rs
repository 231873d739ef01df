//! Gradwire beside an MPI library.
//!
//! A program that uses [`mpi`] moves over one call at a time: [`FromMpi::from_mpi`] makes a communicator of the ranks of
//! one of MPI's.
//!
//! ```no_run
//! use gradwire::{Communicator, Sum};
//! use gradwire_mpi::FromMpi;
//! use mpi::traits::*;
//!
//! # fn main() -> gradwire::Result<()> {
//! let universe = mpi::initialize().expect("MPI starts once");
//! let world = universe.world();
//! let communicator = Communicator::from_mpi(&world)?;
//!
//! let mut loss = [1.0_f32];
//! communicator.all_reduce(&mut loss, Sum)?;
//! world.barrier();
//! # Ok(())
//! # }
//! ```

use gradwire::bootstrap::{Bootstrap, Local};
use gradwire::{Config, Rank, Result};
use mpi::Count;
use mpi::datatype::PartitionMut;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use std::fmt;
use std::time::Instant;

/// Communicators made from those of MPI.
pub trait FromMpi: Sized {
    /// A communicator of the ranks of `world`, with their numbers. All of them call it.
    ///
    /// Addresses and the secret of the job are exchanged by collectives of MPI, on a duplicate of `world`; what is
    /// sent afterwards does not pass through MPI. No launcher is asked, so it works under any, in programs whose MPI
    /// library speaks to it. The settings are those of the [environment](Config::from_environment).
    ///
    /// # Errors
    ///
    /// As [`gradwire::init`].
    fn from_mpi(world: &impl Communicator) -> Result<Self> {
        Self::from_mpi_with(world, &Config::from_environment()?)
    }

    /// As [`from_mpi`](Self::from_mpi), with settings of the program's choice.
    ///
    /// MPI's collectives know no deadline: [`start_timeout`](Config::start_timeout) bounds what follows the exchange
    /// of addresses, not the exchange.
    ///
    /// # Errors
    ///
    /// As [`gradwire::init`].
    fn from_mpi_with(world: &impl Communicator, config: &Config) -> Result<Self>;
}

impl FromMpi for gradwire::Communicator {
    fn from_mpi_with(world: &impl Communicator, config: &Config) -> Result<Self> {
        let (rank, size) = (unsigned(world.rank()), unsigned(world.size()));
        gradwire::init_over(&mut Mpi { world: world.duplicate(), rank, size }, config)
    }
}

/// Ranks that reach each other through MPI.
struct Mpi {
    world: SimpleCommunicator,
    rank: Rank,
    size: usize,
}

impl Bootstrap for Mpi {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local(&self) -> Option<Local> {
        None
    }

    fn all_gather(&mut self, bytes: &[u8], _deadline: Instant) -> Result<Vec<Vec<u8>>> {
        let mut counts = vec![0 as Count; self.size];
        self.world.all_gather_into(&(bytes.len() as Count), &mut counts[..]);
        let ends = counts.iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        });
        let starts: Vec<Count> = ends.zip(&counts).map(|(end, count)| end - count).collect();
        let mut all = vec![0; counts.iter().copied().map(unsigned).sum()];
        // An empty slice may begin at an address that MPI takes for something else, such as MPI_IN_PLACE.
        if !all.is_empty() {
            let mut own = Vec::with_capacity(bytes.len() + 1);
            own.extend_from_slice(bytes);
            let mut parts = PartitionMut::new(&mut all[..], counts.as_slice(), &starts[..]);
            self.world.all_gather_varcount_into(&own[..], &mut parts);
        }
        let parts = starts.iter().zip(&counts).map(|(start, count)| (unsigned(*start), unsigned(*count)));
        Ok(parts.map(|(start, count)| all[start..start + count].to_vec()).collect())
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

/// MPI counts in `int`, and never below zero.
fn unsigned(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}
