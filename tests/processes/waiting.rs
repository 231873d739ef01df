//! Ranks that wait: they can be interrupted, and leave the processors to others.

use crate::job::{Job, RANK};
use gradwire::launch::Ending;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// Case 24, while the ranks meet: one of two is there.
#[test]
fn an_interrupt_ends_a_rank_that_waits_for_the_others_to_come() {
    let address = format!("unix:gradwire-interrupt-{}", std::process::id());
    let mut command = Command::new(RANK);
    command.arg("train").envs([("GRADWIRE_RANK", "0"), ("GRADWIRE_SIZE", "2"), ("GRADWIRE_LOG", "debug")]);
    let mut rank = command.env("GRADWIRE_ADDRESS", address).stderr(Stdio::piped()).spawn().unwrap();
    // It has found its place, and looks for the others.
    let mut said = BufReader::new(rank.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("according to the settings")));
    kill_process(Pid::from_child(&rank), Signal::INT).unwrap();
    assert_eq!(rank.wait().unwrap().signal(), Some(2));
}

/// Case 24, in a call: the library takes the signal from nobody, and the other ranks learn who is gone.
#[test]
fn an_interrupt_ends_a_rank_that_waits_in_a_call() {
    for call in ["all_reduce", "barrier"] {
        for transport in ["shm", "tcp"] {
            let mut job = Job::start(3, &["absent", call], &[("GRADWIRE_TRANSPORT", transport)]);
            job.set_off(3);
            job.signal(1, Signal::INT);
            let failure = job.await_all("failed", 1).remove(0);
            assert_eq!(failure.rank, 2);
            let (_, error) = failure.text.split_once(' ').unwrap();
            assert!(error.starts_with("lost 1: "), "{call} over {transport}: {error}");
            job.say_go([0]);
            let failure = job.await_all("failed", 1).remove(0);
            assert!(failure.rank == 0 && failure.text.contains("lost 1: "), "{failure:?}");
            let endings = [Ending::Code(0), Ending::Signal(2), Ending::Code(0)];
            assert_eq!(job.end().endings, endings, "{call} over {transport}");
        }
    }
}

/// Case 24, for a program with a handler of its own: its calls end with a typed error, and those of the others.
#[test]
fn a_handler_of_the_program_can_abort_the_calls() {
    for transport in ["shm", "tcp"] {
        let mut job = Job::start(3, &["absent", "handled"], &[("GRADWIRE_TRANSPORT", transport)]);
        job.set_off(3);
        job.signal(1, Signal::INT);
        let mut failures = job.await_all("failed", 2);
        job.say_go([0]);
        failures.extend(job.await_all("failed", 1));
        for failure in failures {
            let (_, error) = failure.text.split_once(' ').unwrap();
            assert!(
                error.starts_with("aborted 1: ") && error.contains("interrupted"),
                "{transport}: {error}"
            );
        }
        assert_eq!(job.end().endings, [Ending::Code(0); 3], "{transport}");
    }
}

/// Case 85: eight ranks on one processor give way to the one that has work. Where each spun for its time slice, of some
/// milliseconds, a thousand calls would take minutes.
#[test]
fn ranks_that_share_a_processor_do_not_spin() {
    const RANKS: usize = 8;
    for transport in ["shm", "tcp"] {
        let mut job = Job::start(RANKS, &["crowd"], &[("GRADWIRE_TRANSPORT", transport)]);
        job.set_off(RANKS);
        let times = job.await_all("took", RANKS);
        let total: u64 = times.iter().map(|event| event.text.parse::<u64>().unwrap()).sum();
        assert!(total < 8_000_000_000, "{total} ns of a processor over {transport}");
        assert_eq!(job.end().endings, [Ending::Code(0); RANKS]);
    }
}

/// Cases 86 and 88: who waits takes less than one per cent of a processor, and has one thread beside its own, however many
/// processors and communicators there are.
#[test]
fn a_rank_that_waits_is_idle() {
    for transport in ["shm", "tcp"] {
        let mut job = Job::start(2, &["idle"], &[("GRADWIRE_TRANSPORT", transport)]);
        job.set_off(2);
        for event in job.await_all("took", 2) {
            let (took, threads) = event.text.split_once(' ').unwrap();
            let took: u64 = took.parse().unwrap();
            assert!(took < 30_000_000, "rank {} over {transport}: {took} ns in three seconds", event.rank);
            assert_eq!(threads, "2", "rank {} over {transport}", event.rank);
        }
        assert_eq!(job.end().endings, [Ending::Code(0); 2]);
    }
}
