//! All bytes through MPI: `mpirun -n 3 target/mpi/openmpi/debug/examples/through`.

// ANCHOR: program
use gradwire::config::TransportChoice;
use gradwire::{Communicator, Config, Sum};
use gradwire_mpi::FromMpi;
use mpi::environment::{Threading, initialize_with_threading};

fn main() -> gradwire::Result<()> {
    // The communicator is driven by a thread of its own.
    let (universe, _) = initialize_with_threading(Threading::Multiple).expect("MPI starts once");
    let world = universe.world();

    // Shared memory inside hosts, MPI between them.
    let communicator = Communicator::through_mpi(&world)?;
    compute(&communicator, "shm")?;

    // MPI everywhere.
    let mut config = Config::from_environment()?;
    config.transport = TransportChoice::Own;
    compute(&Communicator::through_mpi_with(&world, &config)?, "mpi")
}

fn compute(communicator: &Communicator, path: &str) -> gradwire::Result<()> {
    let (rank, size) = (communicator.rank(), communicator.size());
    let mut gradients: Vec<f32> = (0..100_000).map(|index| (index % 7 + rank) as f32).collect();
    communicator.all_reduce(&mut gradients, Sum)?;
    let ranks = size * (size - 1) / 2;
    assert!(gradients.iter().enumerate().all(|(index, sum)| *sum == (index % 7 * size + ranks) as f32));

    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut number = [0_u64];
    communicator.send_receive(&[rank as u64], next, 0, &mut number, previous, 0)?;
    assert_eq!(number, [previous as u64]);
    // On one host.
    assert_eq!(communicator.path(next), Some(path));
    Ok(())
}
// ANCHOR_END: program
