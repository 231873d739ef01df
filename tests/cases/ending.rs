//! Ranks that leave, fail, or are told to stop.

use gradwire::{Error, Sum};
use gradwire_tests::ranks::{Over, run, sums, value, values};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, Mutex, mpsc};

over! {
    Sim, Shm, Tcp:
    a_rank_that_goes_on_alone_is_told_who_left,
    a_rank_that_panics_is_lost_to_the_others,
    an_abort_ends_the_calls_of_all_ranks,
    an_abort_ends_calls_on_other_communicators_too,
    ranks_may_leave_at_different_times,
    each_thread_with_its_own_duplicate,
}

/// Case 7: rank 2 makes one call more than the others.
fn a_rank_that_goes_on_alone_is_told_who_left(over: Over) {
    for count in [3, 50_000] {
        run(over, 3, |comm| {
            for _ in 0..10 {
                let mut mine = values(comm.rank(), count);
                comm.all_reduce(&mut mine, Sum).unwrap();
                assert!(mine == sums(3, count));
            }
            if comm.rank() == 2 {
                let error = comm.all_reduce(&mut values(2, count), Sum).unwrap_err();
                assert!(matches!(&error, Error::PeerLost { rank: 0 | 1, .. }), "{error}");
            }
        });
    }
}

/// Case 20: before its fifth all_reduce. The others do not wait for the deadline, which is a minute.
fn a_rank_that_panics_is_lost_to_the_others(over: Over) {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        run(over, 4, |comm| {
            for call in 0.. {
                if (comm.rank(), call) == (1, 4) {
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                let Err(error) = comm.all_reduce(&mut values(comm.rank(), 1000), Sum) else { continue };
                assert_eq!(call, 4);
                assert!(matches!(&error, Error::PeerLost { rank: 1, .. }), "{error}");
                return;
            }
        });
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
}

fn an_abort_ends_the_calls_of_all_ranks(over: Over) {
    for count in [1, 50_000] {
        let (sender, handles) = mpsc::channel();
        let handles = Mutex::new(handles);
        let started = Barrier::new(4);
        run(over, 4, |comm| {
            comm.barrier().unwrap();
            started.wait();
            if comm.rank() == 3 {
                // It never calls: whoever holds a handle ends the wait of the others.
                sender.send(comm.abort_handle()).unwrap();
                handles.lock().unwrap().recv().unwrap().abort("enough");
                let error = comm.barrier().unwrap_err();
                assert!(
                    matches!(&error, Error::Aborted { rank: 3, reason } if &**reason == "enough"),
                    "{error}"
                );
                return;
            }
            let error = comm.all_reduce(&mut values(comm.rank(), count), Sum).unwrap_err();
            assert!(matches!(&error, Error::Aborted { rank: 3, reason } if &**reason == "enough"), "{error}");
            assert!(matches!(comm.duplicate(), Err(Error::Aborted { rank: 3, .. })));
        });
    }
}

/// Case 19.
fn an_abort_ends_calls_on_other_communicators_too(over: Over) {
    let split = Barrier::new(4);
    run(over, 4, |comm| {
        let half = comm.split(Some(comm.rank() as u32 % 2), 0).unwrap().unwrap();
        split.wait();
        if comm.rank() == 0 {
            comm.abort_handle().abort("from the world");
        }
        let error = loop {
            match half.all_reduce(&mut values(comm.rank(), 100), Sum) {
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, Error::Aborted { .. }), "{error}");
    });
}

/// Case 22: nobody calls anything to finish, and no order is asked for.
fn ranks_may_leave_at_different_times(over: Over) {
    // Each leaves only when the one before has left.
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..5).map(|_| mpsc::channel::<()>()).unzip();
    let senders = Mutex::new(senders.into_iter().map(Some).collect::<Vec<_>>());
    let receivers = Mutex::new(receivers.into_iter().map(Some).collect::<Vec<_>>());
    run(over, 4, |comm| {
        let rank = comm.rank();
        let turn = receivers.lock().unwrap()[rank].take().unwrap();
        let next = senders.lock().unwrap()[rank + 1].take().unwrap();
        if rank == 0 {
            senders.lock().unwrap()[0].take();
        }
        for count in [1, 70_000] {
            let mut mine = values(rank, count);
            comm.all_reduce(&mut mine, Sum).unwrap();
            assert!(mine == sums(4, count));
        }
        assert!(turn.recv().is_err(), "the one before has dropped its end");
        drop(comm);
        drop(next);
    });
}

/// Case 10 (b); (a) does not compile, see the UI tests.
fn each_thread_with_its_own_duplicate(over: Over) {
    run(over, 2, |comm| {
        let duplicates = [comm.duplicate().unwrap(), comm.duplicate().unwrap()];
        std::thread::scope(|scope| {
            for (thread, comm) in duplicates.into_iter().enumerate() {
                scope.spawn(move || {
                    for call in 0..300 {
                        let count = [1, 40, 3000][call % 3];
                        let own = |rank| values(rank * 2 + thread, count);
                        let mut mine = own(comm.rank());
                        comm.all_reduce(&mut mine, Sum).unwrap();
                        let expected = |index| value(thread, index) + value(2 + thread, index);
                        assert!(mine.iter().enumerate().all(|(index, sum)| *sum == expected(index)));
                    }
                });
            }
        });
    });
}
