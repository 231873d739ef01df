//! What the first programs of an MPI course do, in the words of this library: with 2, 3 and 5 ranks, over shared memory
//! and over TCP.

#![forbid(unsafe_code)]

mod blocks;
mod datatypes;
mod groups;
mod later;
mod messages;
mod reductions;
mod windows;

use gradwire::Communicator;
use gradwire_tests::ranks::{Over, run};

fn everywhere(program: impl Fn(Communicator) + Sync) {
    for over in [Over::Shm, Over::Tcp] {
        for ranks in [2, 3, 5] {
            run(over, ranks, &program);
        }
    }
}
