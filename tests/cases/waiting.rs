//! Ranks that come late or not at all: the others say whom they waited for.

use gradwire::{Error, Rank, Sum};
use gradwire_tests::ranks::{Over, run, values};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

over! {
    Sim, Shm, Tcp:
    all_missing_ranks_are_named,
    nobody_else_is_blamed_when_rank_0_is_missing,
    a_call_in_another_communicator_does_not_count,
    what_a_rank_has_sent_leaves_though_it_makes_no_further_call,
}

/// Case 8: ranks 3 and 6 stay away until the others have given up.
fn all_missing_ranks_are_named(over: Over) {
    for count in [2, 40_000] {
        absence(over, 8, &[3, 6], count);
    }
}

fn nobody_else_is_blamed_when_rank_0_is_missing(over: Over) {
    for count in [2, 40_000] {
        absence(over, 4, &[0], count);
    }
}

fn absence(over: Over, ranks: usize, missing: &[Rank], count: usize) {
    let given_up = Barrier::new(ranks);
    run(over, ranks, |comm| {
        comm.barrier().unwrap();
        comm.set_timeout(Some(Duration::from_millis(700)));
        if missing.contains(&comm.rank()) {
            given_up.wait();
            // Too late: it is told so, at the latest by the next call if the others had sent all that this one needs.
            let call = || comm.all_reduce(&mut values(comm.rank(), count), Sum);
            let error = call().and_then(|()| call()).unwrap_err();
            assert!(matches!(&error, Error::Aborted { rank, .. } if *rank == comm.rank()), "{error}");
            return;
        }
        let error = comm.all_reduce(&mut values(comm.rank(), count), Sum).unwrap_err();
        let again = comm.barrier().unwrap_err();
        given_up.wait();
        let Error::TimedOut { call, waiting_for, .. } = &error else { panic!("{error}") };
        assert_eq!((&*call.name, &**waiting_for), ("all_reduce", missing), "{error}");
        assert_eq!(call.sequence, 1, "it was the second: {error}");
        // The next call says the same again, at once.
        assert_eq!(again.to_string(), error.to_string());
    });
}

/// Rank 2 is busy on a duplicate: the time-out of the one communicator does not end the other.
fn a_call_in_another_communicator_does_not_count(over: Over) {
    let given_up = Barrier::new(3);
    run(over, 3, |comm| {
        let other = comm.duplicate().unwrap();
        comm.set_timeout(Some(Duration::from_millis(400)));
        if comm.rank() == 2 {
            given_up.wait();
        } else {
            let error = comm.barrier().unwrap_err();
            given_up.wait();
            assert!(matches!(&error, Error::TimedOut { waiting_for, .. } if **waiting_for == [2]), "{error}");
        }
        let mut mine = [comm.rank() as u64 + 1];
        other.all_reduce(&mut mine, Sum).unwrap();
        assert_eq!(mine, [6]);
        other.barrier().unwrap();
    });
}

/// The thread that stands in for callers sleeps already when the message is given to the transport. There is no deadline,
/// whose coming would wake it: only a watchman who gives up.
fn what_a_rank_has_sent_leaves_though_it_makes_no_further_call(over: Over) {
    let (received, stuck) = (Barrier::new(2), AtomicBool::new(false));
    run(over, 2, |comm| {
        comm.set_timeout(None);
        let (all_well, watch) = mpsc::channel::<()>();
        let handle = comm.abort_handle();
        let watchman = std::thread::spawn(move || {
            if watch.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
                handle.abort("a message is stuck");
            }
        });
        for round in 0..20 {
            // Long enough for whoever has nothing to do to fall asleep.
            std::thread::sleep(Duration::from_millis(5));
            let mut message = [0];
            let result = if comm.rank() == 0 {
                comm.send(&[round], 1, 0)
            } else {
                comm.recv(&mut message, 0, 0).map(|_| assert_eq!(message, [round]))
            };
            stuck.fetch_or(result.is_err(), Ordering::SeqCst);
            received.wait();
            assert!(!stuck.load(Ordering::SeqCst), "{result:?}");
        }
        drop(all_well);
        watchman.join().unwrap();
    });
}
