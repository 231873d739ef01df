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
//!
//! What is sent then does not pass through MPI. Where only the MPI library of the machine's vendor reaches the other hosts,
//! [`FromMpi::through_mpi`] makes one whose bytes do: over the [`transport`] in this crate.

mod from_mpi;
#[allow(unsafe_code, reason = "the MPI library's own interface is C's")]
pub mod transport;

pub use from_mpi::FromMpi;
