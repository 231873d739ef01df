//! The contract of transports, kept by the one over MPI: all endpoints of a test live in one process, on MPI's communicator of
//! that process alone.

use gradwire_mpi::transport::Network;
use gradwire_tests::conformance::Backend;
use gradwire_transport::{RegionKey, Transport};
use mpi::environment::{Threading, Universe, initialize_with_threading};
use mpi::topology::SimpleCommunicator;
use std::sync::{Arc, Mutex, PoisonError};

struct OneProcess(Arc<Network>);

/// MPI starts once in a process, and ends with it.
fn start_mpi() -> SimpleCommunicator {
    static UNIVERSE: Mutex<Option<Universe>> = Mutex::new(None);
    let mut universe = UNIVERSE.lock().unwrap_or_else(PoisonError::into_inner);
    let started = || initialize_with_threading(Threading::Multiple).expect("MPI starts").0;
    universe.get_or_insert_with(started).world()
}

impl Backend for OneProcess {
    const NAME: &'static str = "mpi";

    /// Between processes small messages leave at once, under any library. To MPICH, one from a process to itself has not left
    /// before it is read.
    fn keeps_output() -> Option<String> {
        let library = mpi::environment::library_version().expect("a version");
        library.contains("MPICH").then(|| "MPICH keeps what a process sends to itself".to_owned())
    }

    fn start() -> Self {
        Self(Network::of(&start_mpi()).expect("a network"))
    }

    fn endpoint(&mut self) -> Box<dyn Transport> {
        Box::new(self.0.endpoint().expect("an endpoint"))
    }

    /// The length is the last field of a key.
    fn stretch(key: &RegionKey, len: u64) -> Option<RegionKey> {
        let mut bytes = *key.as_bytes();
        bytes[24..].copy_from_slice(&len.to_le_bytes());
        Some(RegionKey::from_bytes(bytes))
    }
}

gradwire_tests::conformance_suite!(OneProcess);
