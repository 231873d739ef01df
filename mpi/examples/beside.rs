//! Half MPI, half Gradwire: `mpirun -n 2 target/mpi/openmpi/debug/examples/beside`.

// ANCHOR: program
use gradwire::{Communicator, Sum};
use gradwire_mpi::FromMpi;
use mpi::traits::*;

fn main() -> gradwire::Result<()> {
    let universe = mpi::initialize().expect("MPI starts once");
    let world = universe.world();
    // All ranks call it, and keep their numbers.
    let communicator = Communicator::from_mpi(&world)?;
    let mut gradients = [1.0_f32; 1000];
    // Over shared memory and TCP, not through MPI.
    communicator.all_reduce(&mut gradients, Sum)?;
    // Still MPI's.
    world.barrier();
    Ok(())
}
// ANCHOR_END: program
