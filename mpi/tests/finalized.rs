//! A communicator that outlives MPI. A binary of its own: MPI ends once in a process.

use gradwire_mpi::FromMpi;
use gradwire_mpi::transport::Network;
use gradwire_transport::{Events, Peer, Transport, TransportError};
use mpi::environment::{Threading, initialize_with_threading};
use std::time::Instant;

#[test]
fn whoever_outlives_mpi_gets_errors_and_not_a_crash() {
    let (universe, _) = initialize_with_threading(Threading::Multiple).unwrap();
    let world = universe.world();
    let communicator = gradwire::Communicator::through_mpi(&world).unwrap();
    let network = Network::of(&world).unwrap();
    let (mut one, other) = (network.endpoint().unwrap(), network.endpoint().unwrap());
    one.connect(Peer::new(0, 0), &other.address()).unwrap();
    let mut events = Events::new();
    one.progress(Instant::now(), &mut events).unwrap();
    drop(universe);

    let broken = one.progress(Instant::now(), &mut events);
    let says_why = |error: &TransportError| error.to_string().contains("MPI was finalized");
    assert!(broken.as_ref().is_err_and(says_why), "{broken:?}");
    drop((one, other, network, communicator));
}
