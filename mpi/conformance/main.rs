//! The same random sequence of calls through Gradwire and through an MPI library, in the same processes.
//!
//! Integers must be the same, floats within one rounding for each addition. The last line says how many calls were made
//! and in how many the results differ; the exit code is not 0 if there is one.

mod arguments;
mod call;
mod compare;
mod domain;
mod group;
mod operation;
mod perform;
mod reducing;
mod value;
#[allow(unsafe_code, reason = "`rsmpi` has no windows")]
mod window;

use arguments::{Arguments, Start};
use call::{Call, Kind};
use compare::Comparison;
use domain::Library;

use gradwire_mpi::FromMpi;
use group::Group;
use mpi::environment::{Threading, initialize_with_threading};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many communicators there are at a time; the first is that of all ranks.
const SLOTS: usize = 4;
/// A call that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() {
    let arguments = Arguments::read(std::env::args().skip(1)).unwrap_or_else(|mistake| end(&mistake, 2));
    // The transport over MPI is driven by a thread of its own.
    let threading = if arguments.start == Start::Through { Threading::Multiple } else { Threading::Single };
    let Some((universe, _)) = initialize_with_threading(threading) else { end("MPI does not start", 2) };
    let theirs = universe.world();
    let ours = match arguments.start {
        Start::Own => gradwire::init(),
        Start::Mpi => gradwire::Communicator::from_mpi(&theirs),
        Start::Through => gradwire::Communicator::through_mpi_with(&theirs, &everything_through_mpi()),
    };
    let world = Group::world(ours.unwrap_or_else(|error| end(&error.to_string(), 2)), theirs.duplicate());
    if let Some(difference) = world.difference() {
        end(&difference, 2);
    }
    let differing = run(&arguments, world);
    let mismatches = count(&theirs, arguments.calls, &differing);
    if theirs.rank() == 0 {
        println!("calls {}, mismatches {mismatches}", arguments.calls);
    }
    drop(universe);
    std::process::exit(i32::from(mismatches > 0));
}

/// Settings by which not even the ranks of one host use shared memory.
fn everything_through_mpi() -> gradwire::Config {
    let mut config = gradwire::Config::from_environment().unwrap_or_else(|error| end(&error.to_string(), 2));
    config.transport = gradwire::config::TransportChoice::Own;
    config
}

/// Makes all calls. Returns the numbers of those whose results differ on this rank.
fn run(arguments: &Arguments, world: Group) -> Vec<usize> {
    let progress = Arc::new(AtomicUsize::new(0));
    watch(progress.clone());
    let rank = world.rank();
    let library = Library::of(&mpi::environment::library_version().unwrap_or_default());
    let mut corrupt = arguments.corrupt.filter(|_| rank == 0);
    let mut differing = Vec::new();
    let mut groups = vec![Some(world), None, None, None];
    for index in 0..arguments.calls {
        progress.store(index + 1, Ordering::Relaxed);
        let call = Call::draw(arguments.seed, index, SLOTS, library);
        let mut comparison =
            Comparison { corrupts: corrupt.is_some_and(|from| index >= from), difference: None };
        let corrupts = comparison.corrupts;
        let outcome = if call.kind == Kind::Split {
            split(&call, &mut groups, &mut comparison)
        } else {
            // Ranks that have no communicator in the slot leave the call to those that have.
            groups[call.slot].as_ref().map_or(Ok(()), |group| perform::perform(&call, group, &mut comparison))
        };
        if corrupts && !comparison.corrupts {
            corrupt = None;
        }
        if let Err(error) = outcome {
            end(&format!("rank {rank}: call {index}, {call:?}: {error}"), 1);
        }
        if let Some(difference) = comparison.difference {
            eprintln!("rank {rank}: call {index}, {call:?}: {difference}");
            differing.push(index);
        }
    }
    differing
}

/// Replaces the communicator of a slot by parts of that of all ranks, or parts of parts.
fn split(call: &Call, groups: &mut [Option<Group>], comparison: &mut Comparison) -> gradwire::Result<()> {
    let slot = call.slot.max(1);
    // A rank without a parent is in no part: it had none in the slot before, either, when it is its own parent.
    let parent = if call.chooses(0) { 0 } else { slot };
    let Some(group) = &groups[parent] else { return Ok(()) };
    let part = group.split(call)?;
    if let Some(difference) = part.as_ref().and_then(Group::difference) {
        comparison.differs(difference);
    }
    groups[slot] = part;
    Ok(())
}

/// In how many calls any rank saw a difference.
fn count(world: &SimpleCommunicator, calls: usize, differing: &[usize]) -> usize {
    let mut own = vec![0_u8; calls];
    differing.iter().for_each(|index| own[*index] = 1);
    let mut all = vec![0_u8; calls];
    world.all_reduce_into(&own[..], &mut all[..], mpi::collective::SystemOperation::max());
    all.iter().filter(|differs| **differs == 1).count()
}

/// MPI waits for ever: a call that hangs shall end the program instead.
fn watch(progress: Arc<AtomicUsize>) {
    std::thread::spawn(move || {
        loop {
            let before = progress.load(Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            if progress.load(Ordering::Relaxed) == before {
                end(&format!("call {} hangs", before.saturating_sub(1)), 3);
            }
        }
    });
}

fn end(reason: &str, code: i32) -> ! {
    eprintln!("conformance: {reason}");
    std::process::exit(code)
}
