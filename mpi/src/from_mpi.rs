//! Communicators made from those of MPI.

use crate::transport::Network;
use gradwire::bootstrap::{Bootstrap, Local};
#[expect(unused_imports, reason = "the documentation speaks of it")]
use gradwire::config::TransportChoice;
use gradwire::{Config, Error, Rank, Result};
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

    /// As [`from_mpi`](Self::from_mpi), but what is sent between hosts passes through MPI, on a duplicate of `world`. Ranks of
    /// one host use shared memory, unless [`transport`](Config::transport) is [`TransportChoice::Own`]: then everything passes
    /// through MPI.
    ///
    /// Start MPI by `mpi::initialize_with_threading(Threading::Multiple)`: the communicator is driven by a thread of its own. Drop
    /// it before MPI is finalized; afterwards its calls return errors.
    ///
    /// # Errors
    ///
    /// As [`gradwire::init`]; [`Error::Bootstrap`] where MPI was started for calls from one thread.
    fn through_mpi(world: &impl Communicator) -> Result<Self> {
        Self::through_mpi_with(world, &Config::from_environment()?)
    }

    /// As [`through_mpi`](Self::through_mpi), with settings of the program's choice.
    ///
    /// # Errors
    ///
    /// As [`through_mpi`](Self::through_mpi).
    fn through_mpi_with(world: &impl Communicator, config: &Config) -> Result<Self>;
}

impl FromMpi for gradwire::Communicator {
    fn from_mpi_with(world: &impl Communicator, config: &Config) -> Result<Self> {
        let (rank, size) = (unsigned(world.rank()), unsigned(world.size()));
        gradwire::init_over(&mut Mpi { world: world.duplicate(), rank, size }, config)
    }

    fn through_mpi_with(world: &impl Communicator, config: &Config) -> Result<Self> {
        let (rank, size) = (unsigned(world.rank()), unsigned(world.size()));
        let endpoint = Network::of(world).and_then(|network| network.endpoint());
        let endpoint = endpoint.map_err(|error| Error::Bootstrap(error.to_string().into()))?;
        let mut ranks = Mpi { world: world.duplicate(), rank, size };
        gradwire::init_over_transport(&mut ranks, config, Box::new(endpoint))
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
