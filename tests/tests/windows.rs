//! Windows over every transport.

use gradwire::window::{Keep, Lock, LockGuard, Replace};
use gradwire::{BitwiseOr, Communicator, Error, Max, Rank, Sum, Window};
use gradwire_tests::ranks::{Over, Random, run, value, values};
use std::sync::Barrier;
use std::time::Duration;

/// More than a transport carries in one message, and than may be on the way at a time.
const LARGE: usize = 700_001;

fn misuse<T: std::fmt::Debug>(result: gradwire::Result<T>) -> String {
    match result.unwrap_err() {
        Error::Misuse(text) => text.to_string(),
        other => panic!("{other}"),
    }
}

fn get(window: &Window<f32>, rank: Rank, offset: usize, count: usize) -> Vec<f32> {
    let mut values = vec![f32::NAN; count];
    window.get(rank, offset, &mut values).unwrap();
    values
}

/// Every rank writes into a part of every rank's part, reads what all wrote, and finds its own in its memory.
fn puts_and_gets(over: Over) {
    for ranks in 1..=4 {
        for count in [1, 3, 1000, if ranks == 2 { LARGE } else { 20_000 }] {
            run(over, ranks, |comm| {
                let rank = comm.rank();
                let window = comm.create_window::<f32>(count * ranks).unwrap();
                assert_eq!(get(&window, (rank + 1) % ranks, 0, count * ranks), vec![0.0; count * ranks]);
                window.fence().unwrap();
                for target in 0..ranks {
                    let mut mine = values(rank * 10 + target, count);
                    window.put(target, rank * count, &mine).unwrap();
                    mine.fill(f32::NAN);
                }
                window.fence().unwrap();
                let expected = |target| -> Vec<f32> {
                    (0..ranks).flat_map(|origin| values(origin * 10 + target, count)).collect()
                };
                for target in 0..ranks {
                    assert!(get(&window, target, 0, count * ranks) == expected(target));
                    let middle = count * ranks / 3..count * ranks / 2;
                    assert!(get(&window, target, middle.start, middle.len()) == expected(target)[middle]);
                }
                let mut own = vec![0.0; count * ranks];
                window.load(0, &mut own).unwrap();
                assert!(own == expected(rank));
                window.fence().unwrap();
            });
        }
    }
}

/// Ranks whose parts differ, down to none at all.
fn each_rank_has_its_own_count(over: Over) {
    run(over, 3, |comm| {
        let window = comm.create_window::<u16>(comm.rank() * 5).unwrap();
        assert_eq!(
            (0..4).map(|rank| window.count(rank)).collect::<Vec<_>>(),
            [Some(0), Some(5), Some(10), None]
        );
        if comm.rank() == 0 {
            window.put(2, 9, &[7]).unwrap();
            window.put(0, 0, &[]).unwrap();
            window.get(1, 5, &mut []).unwrap();
            window.flush_all().unwrap();
            let mut last = [0];
            window.get(2, 9, &mut last).unwrap();
            assert_eq!(last, [7]);
        }
        window.fence().unwrap();
    });
}

fn what_is_outside_is_refused_where_it_is_asked_for(over: Over) {
    run(over, 2, |comm| {
        let window = comm.create_window::<i32>(10 + comm.rank()).unwrap();
        let other = 1 - comm.rank();
        let count = 10 + other;
        let mut two = [5, 5];
        for offset in [count - 1, count, usize::MAX] {
            let text = misuse(window.put(other, offset, &[1, 2]));
            assert!(text.contains(&format!("rank {other}, which has {count}")), "{text}");
            misuse(window.get(other, offset, &mut two));
            misuse(window.accumulate(other, offset, &[1, 2], Sum));
            misuse(window.get_accumulate(other, offset, &[1, 2], &mut two, Sum));
            misuse(window.put_notify(other, offset, &[1, 2], 0));
            misuse(window.load(offset.max(10 + comm.rank()), &mut two));
            misuse(window.store(offset.max(10 + comm.rank()), &two));
        }
        misuse(window.fetch_and_op(other, count, 1, Sum));
        misuse(window.compare_and_swap(other, count, 1, 2));
        misuse(window.get_accumulate(other, 0, &[1, 2], &mut [0], Sum));
        misuse(window.put(2, 0, &[1]));
        misuse(window.flush(2));
        misuse(window.lock(2, Lock::Shared));
        misuse(window.post(&[2]));
        misuse(window.start(&[other, other]));
        misuse(window.put_notify(other, 0, &[1], Window::<i32>::NOTICES));
        misuse(window.wait_any_notice(3..3));
        assert_eq!(two, [5, 5]);
        window.fence().unwrap();
        let mut all = vec![1; count];
        window.get(other, 0, &mut all).unwrap();
        assert_eq!(all, vec![0; count]);
        window.fence().unwrap();
    });
}

/// A contended counter on each rank, from all ranks at once: every number is given out once.
fn counters(over: Over) {
    const EACH: u64 = 200;
    for ranks in 1..=4 {
        let mut drawn: Vec<u64> = run(over, ranks, |comm| {
            let window = comm.create_window::<u64>(3).unwrap();
            let draw = |_| window.fetch_and_op(ranks - 1, 1, 1, Sum).unwrap();
            let drawn: Vec<u64> = (0..EACH).map(draw).collect();
            assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            window.fence().unwrap();
            let mut own = [9; 3];
            window.load(0, &mut own).unwrap();
            assert_eq!(own, [0, if comm.rank() == ranks - 1 { EACH * ranks as u64 } else { 0 }, 0]);
            drawn
        })
        .into_iter()
        .flatten()
        .collect();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..EACH * ranks as u64).collect::<Vec<_>>());
    }
}

/// Sums of floats and of integers from all ranks into all ranks, the owner's own included; other operations beside them.
fn accumulates(over: Over) {
    const COUNT: usize = 20_001;
    for ranks in 1..=4 {
        run(over, ranks, |comm| {
            let rank = comm.rank();
            let floats = comm.create_window::<f32>(COUNT).unwrap();
            let integers = comm.create_window::<i64>(5).unwrap();
            for target in (0..ranks).map(|step| (rank + step) % ranks) {
                floats.accumulate(target, 1, &values(rank, COUNT - 1), Sum).unwrap();
                for call in 0..50 {
                    integers.accumulate(target, 0, &[rank as i64 + 1, -1], Sum).unwrap();
                    integers.accumulate(target, 2, &[(rank * 100 + call) as i64], Max).unwrap();
                    integers.accumulate(target, 3, &[1 << rank], BitwiseOr).unwrap();
                }
            }
            floats.fence().unwrap();
            integers.fence().unwrap();
            let mut sums = vec![1.0; COUNT];
            floats.load(0, &mut sums).unwrap();
            let expected = |index: usize| (0..ranks).map(|rank| value(rank, index)).sum::<f32>();
            assert_eq!(sums[0], 0.0);
            assert!(sums[1..].iter().enumerate().all(|(index, sum)| *sum == expected(index)));
            let mut own = [0; 5];
            integers.load(0, &mut own).unwrap();
            let ranks = ranks as i64;
            let largest = (ranks - 1) * 100 + 49;
            assert_eq!(own, [25 * ranks * (ranks + 1), -50 * ranks, largest, (1 << ranks) - 1, 0]);
        });
    }
}

/// Each takes what is there and leaves its own: nothing is lost and nothing comes twice, over many elements in many pieces.
fn get_accumulate_exchanges(over: Over) {
    const COUNT: usize = 40_000;
    let mut seen: Vec<Vec<u32>> = run(over, 3, |comm| {
        let window = comm.create_window::<u32>(COUNT).unwrap();
        let (mut before, mut last) = (vec![77; COUNT], vec![77; COUNT]);
        let mine: Vec<u32> = (0..COUNT).map(|index| (comm.rank() + 1 + index * 10) as u32).collect();
        window.get_accumulate(0, 0, &mine, &mut before, Replace).unwrap();
        window.fence().unwrap();
        window.get_accumulate(0, 0, &mine, &mut last, Keep).unwrap();
        window.fence().unwrap();
        vec![before, last]
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(seen[1] == seen[3] && seen[1] == seen[5], "the last one is the same for all");
    seen.truncate(4);
    seen.remove(3);
    for index in 0..COUNT {
        let base = (index * 10) as u32;
        let mut there: Vec<u32> = seen.iter().map(|values| values[index]).collect();
        there.sort_unstable();
        assert!(there.iter().all(|value| *value == 0 || (base + 1..=base + 3).contains(value)), "{there:?}");
    }
}

/// A lock made of compare_and_swap guards a pair of elements that are written one after the other.
fn a_spin_lock(over: Over) {
    for ranks in 1..=4 {
        run(over, ranks, |comm| {
            let owner = ranks / 2;
            let window = comm.create_window::<u64>(3).unwrap();
            for _ in 0..40 {
                while window.compare_and_swap(owner, 0, 0, comm.rank() as u64 + 1).unwrap() != 0 {
                    std::thread::yield_now();
                }
                let mut pair = [0; 2];
                window.get(owner, 1, &mut pair).unwrap();
                assert_eq!(pair[0] * 3, pair[1], "somebody else is inside");
                window.put(owner, 1, &[pair[0] + 1]).unwrap();
                window.put(owner, 2, &[pair[1] + 3]).unwrap();
                assert_eq!(window.fetch_and_op(owner, 0, 0, Replace).unwrap(), comm.rank() as u64 + 1);
            }
            window.fence().unwrap();
            let mut all = [0; 3];
            window.get(owner, 0, &mut all).unwrap();
            assert_eq!(all, [0, 40 * ranks as u64, 120 * ranks as u64]);
            window.fence().unwrap();
        });
    }
}

/// Whoever holds the exclusive lock is alone; those who share it are not.
fn locks(over: Over) {
    for ranks in 1..=4 {
        run(over, ranks, |comm| {
            let window = comm.create_window::<u32>(2).unwrap();
            for round in 0..30 {
                let owner = round % ranks;
                let lock = window.lock(owner, Lock::Exclusive).unwrap();
                let mut inside = [0];
                window.get(owner, 0, &mut inside).unwrap();
                window.put(owner, 0, &[inside[0] + 1]).unwrap();
                // Given back in order behind the put, with and without waiting for it.
                if round % 2 == 0 {
                    lock.unlock().unwrap();
                }
            }
            window.fence().unwrap();
            let mut own = [0];
            window.load(0, &mut own).unwrap();
            let turns = (0..30).filter(|round| round % ranks == comm.rank()).count();
            assert_eq!(own[0] as usize, turns * ranks);
            // All hold it at the same time, or they would wait for each other here.
            let shared = window.lock_all().unwrap();
            comm.barrier().unwrap();
            shared.unlock().unwrap();
            let held = window.lock(0, Lock::Exclusive).unwrap();
            assert!(misuse(window.lock(0, Lock::Shared)).contains("holds the lock"));
            held.unlock().unwrap();
            window.fence().unwrap();
        });
    }
}

/// A lock that is not granted in time may be asked for again.
fn a_lock_that_is_held_for_too_long(over: Over) {
    let (given_up, given_back) = (Barrier::new(2), Barrier::new(2));
    run(over, 2, |comm| {
        let window = comm.create_window::<u8>(1).unwrap();
        comm.barrier().unwrap();
        if comm.rank() == 0 {
            let lock = window.lock(0, Lock::Exclusive).unwrap();
            comm.barrier().unwrap();
            given_up.wait();
            lock.unlock().unwrap();
            given_back.wait();
        } else {
            comm.barrier().unwrap();
            window.set_timeout(Some(Duration::from_millis(100)));
            let error = window.lock(0, Lock::Shared).map(drop).unwrap_err();
            let Error::TimedOut { call, waiting_for, .. } = &error else { panic!("{error}") };
            assert_eq!((&*call.name, &**waiting_for), ("lock", &[0][..]), "{error}");
            given_up.wait();
            given_back.wait();
            window.set_timeout(None);
            window.lock(0, Lock::Exclusive).unwrap().unlock().unwrap();
        }
        window.fence().unwrap();
    });
}

/// Rank 0 calls nothing at all until the others are done.
fn the_owner_need_not_call_anything(over: Over) {
    for ranks in 2..=4 {
        let done = Barrier::new(ranks);
        run(over, ranks, |comm| {
            let window = comm.create_window::<i64>(1000).unwrap();
            if comm.rank() > 0 {
                let mine = vec![comm.rank() as i64; 1000];
                for _ in 0..20 {
                    window.accumulate(0, 0, &mine, Sum).unwrap();
                }
                window.flush(0).unwrap();
                let lock = window.lock(0, Lock::Exclusive).unwrap();
                window.fetch_and_op(0, 999, 1, Sum).unwrap();
                lock.unlock().unwrap();
            }
            done.wait();
            if comm.rank() == 0 {
                let expected = 20 * (1..ranks as i64).sum::<i64>();
                let mut own = vec![0; 1000];
                window.load(0, &mut own).unwrap();
                assert_eq!(own[..999], [expected; 999]);
                assert_eq!(own[999], expected + ranks as i64 - 1);
            }
        });
    }
}

/// Workers write into slots of their own and raise a notice of their own; the server takes them as they come.
fn notices(over: Over) {
    const COUNT: usize = 30_000;
    for ranks in 2..=4 {
        run(over, ranks, |comm| {
            let rank = comm.rank();
            let window = comm.create_window::<f32>(if rank == 0 { COUNT * ranks } else { 0 }).unwrap();
            if rank > 0 {
                window.put_notify(0, rank * COUNT, &values(rank, COUNT), rank).unwrap();
                // Notice 0 counts: two from each, one of them with nothing to write.
                window.put_notify(0, 0, &[], 0).unwrap();
                window.put_notify(0, rank, &[1.0], 0).unwrap();
            } else {
                let mut open: Vec<Rank> = (1..ranks).collect();
                while !open.is_empty() {
                    let (notice, count) = window.wait_any_notice(1..ranks).unwrap();
                    assert_eq!(count, 1);
                    let mut slot = vec![0.0; COUNT];
                    window.load(notice * COUNT, &mut slot).unwrap();
                    assert!(slot == values(notice, COUNT));
                    open.retain(|rank| *rank != notice);
                }
                let mut counted = 0;
                while counted < 2 * (ranks as u64 - 1) {
                    counted += window.wait_notice(0).unwrap();
                }
                assert_eq!(counted, 2 * (ranks as u64 - 1));
                assert!((0..ranks).all(|notice| window.test_notice(notice).unwrap().is_none()));
                window.put_notify(0, 0, &[4.0], 5).unwrap();
                assert_eq!(window.test_notice(5).unwrap(), Some(1));
            }
            window.fence().unwrap();
        });
    }
}

/// Two ranks answer each other by notices alone, however often either sleeps in between.
fn notices_wake_who_waits(over: Over) {
    run(over, 2, |comm| {
        let window = comm.create_window::<u32>(1).unwrap();
        let other = 1 - comm.rank();
        for round in 0..60 {
            let arrived = || {
                assert_eq!(window.wait_notice(7).unwrap(), 1);
                let mut own = [0];
                window.load(0, &mut own).unwrap();
                assert_eq!(own, [round]);
            };
            if comm.rank() == 0 {
                window.put_notify(other, 0, &[round], 7).unwrap();
                arrived();
            } else {
                arrived();
                if round % 20 == 0 {
                    // Long enough that the one who waits is asleep.
                    std::thread::sleep(Duration::from_millis(5));
                }
                window.put_notify(other, 0, &[round], 7).unwrap();
            }
        }
    });
}

/// Neighbours open their parts to each other, round after round.
fn post_start_complete_wait(over: Over) {
    for ranks in 1..=4 {
        run(over, ranks, |comm| {
            let rank = comm.rank();
            let (left, right) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
            let window = comm.create_window::<u64>(1).unwrap();
            misuse(window.complete());
            misuse(window.wait());
            for round in 0..20 {
                window.post(&[left]).unwrap();
                misuse(window.post(&[left]));
                window.start(&[right]).unwrap();
                misuse(window.start(&[right]));
                window.put(right, 0, &[round * 100 + rank as u64]).unwrap();
                window.complete().unwrap();
                window.wait().unwrap();
                let mut own = [0];
                window.load(0, &mut own).unwrap();
                assert_eq!(own, [round * 100 + left as u64]);
            }
        });
    }
}

/// Slices of the parts exist while no part is exposed.
fn slices(over: Over) {
    for ranks in 1..=4 {
        run(over, ranks, |comm| {
            let (rank, next) = (comm.rank(), (comm.rank() + 1) % ranks);
            let mut window = comm.create_window::<f64>(100).unwrap();
            for round in 0..10 {
                window.with_local(|part| part.fill((rank * 10 + round) as f64)).unwrap();
                window.accumulate(next, 50, &[0.5; 50], Sum).unwrap();
                let sum: f64 = window.with_local(|part| part.iter().sum()).unwrap();
                assert_eq!(sum, ((rank * 10 + round) * 100 + 25) as f64);
            }
        });
    }
}

/// Some fence, some want slices: all are told, and the window goes on.
fn fences_that_differ(over: Over) {
    run(over, 2, |comm| {
        let mut window = comm.create_window::<u8>(4).unwrap();
        let error = match comm.rank() {
            0 => window.fence().unwrap_err(),
            _ => window.with_local(|_| panic!("the ranks disagree")).unwrap_err(),
        };
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
        window.fence().unwrap();
    });
}

fn windows_of_different_types(over: Over) {
    run(over, 2, |comm| {
        let error = match comm.rank() {
            0 => comm.create_window::<u32>(1).map(drop).unwrap_err(),
            _ => comm.create_window::<f32>(1).map(drop).unwrap_err(),
        };
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
        comm.barrier().unwrap();
    });
}

/// Rank 1 drops its window while rank 0 goes on using it.
fn a_window_that_was_dropped(over: Over) {
    run(over, 2, |comm| {
        let window = comm.create_window::<u32>(10).unwrap();
        let other = comm.create_window::<u32>(10).unwrap();
        if comm.rank() == 1 {
            drop(window);
            comm.barrier().unwrap();
        } else {
            comm.barrier().unwrap();
            // The word of it may come after the barrier.
            let error = loop {
                match window.put(1, 0, &[1]).and_then(|()| window.flush(1)) {
                    Ok(()) => std::thread::yield_now(),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().contains("rank 1 has dropped"), "{error}");
            misuse(window.get(1, 0, &mut [0]));
            misuse(window.fetch_and_op(1, 0, 1, Sum));
            misuse(window.accumulate(1, 0, &[1], Sum));
            window.put(0, 0, &[1]).unwrap();
            window.flush_all().unwrap();
            drop(window);
        }
        // Others are not concerned.
        other.put(1 - comm.rank(), 3, &[5]).unwrap();
        other.fence().unwrap();
        let mut own = [0];
        other.load(3, &mut own).unwrap();
        assert_eq!(own, [5]);
    });
}

/// Windows of all ages, dropped by all ranks in different orders, with accesses on the way.
fn windows_come_and_go(over: Over) {
    run(over, 3, |comm| {
        let mut random = Random::new(comm.rank() as u64);
        let mut open = Vec::new();
        for round in 0..12 {
            let window = comm.create_window::<u64>(100).unwrap();
            // Another rank may have dropped it by now.
            if let Err(error) = window.accumulate((comm.rank() + round) % 3, 7, &[1; 20], Sum) {
                assert!(error.to_string().contains("has dropped"), "{error}");
            }
            open.push(window);
            if round % 2 == 1 {
                open.swap_remove(random.below(open.len() as u64) as usize);
            }
        }
    });
}

/// Rank 1 leaves in the middle of accesses to it; `processes` has a rank that is killed.
fn an_owner_that_leaves(over: Over) {
    let started = Barrier::new(3);
    run(over, 3, |comm: Communicator| {
        let window = comm.create_window::<u64>(50_000).unwrap();
        window.fence().unwrap();
        started.wait();
        if comm.rank() == 1 {
            return;
        }
        let mine = vec![1; 50_000];
        let mut theirs = vec![0; 50_000];
        let error = loop {
            let step = window
                .accumulate(1, 0, &mine, Sum)
                .and_then(|()| window.get(1, 0, &mut theirs))
                .and_then(|()| window.lock(1, Lock::Exclusive).and_then(LockGuard::unlock));
            if let Err(error) = step {
                break error;
            }
        };
        // It says so before it leaves; the other survivor may have waited for it and ended the window.
        let lost = |error: &Error| matches!(error, Error::PeerLost { rank: 1, .. });
        assert!(lost(&error) || error.to_string().contains("rank 1 has dropped"), "{error}");
        let error = window.fence().unwrap_err();
        assert!(lost(&error) || error.to_string().contains("rank 1 has dropped"), "{error}");
    });
}

/// Who waits for a notice that never comes gets the names of those who could have sent it.
fn nobody_raises_the_notice(over: Over) {
    let given_up = Barrier::new(3);
    run(over, 3, |comm| {
        let window = comm.create_window::<u8>(1).unwrap();
        if comm.rank() == 0 {
            window.set_timeout(Some(Duration::from_millis(100)));
            let error = window.wait_notice(3).unwrap_err();
            let Error::TimedOut { waiting_for, .. } = &error else { panic!("{error}") };
            assert_eq!(**waiting_for, [1, 2], "{error}");
            window.set_timeout(None);
        }
        given_up.wait();
        window.fence().unwrap();
    });
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name { over!(@tests $over: puts_and_gets, each_rank_has_its_own_count,
            what_is_outside_is_refused_where_it_is_asked_for, counters, accumulates, get_accumulate_exchanges, a_spin_lock,
            locks, a_lock_that_is_held_for_too_long, the_owner_need_not_call_anything, notices, notices_wake_who_waits,
            post_start_complete_wait, slices, fences_that_differ, windows_of_different_types, a_window_that_was_dropped,
            windows_come_and_go, an_owner_that_leaves, nobody_raises_the_notice,
        ); }
    )*};
    (@tests $over:ident: $($test:ident,)*) => {$(
        #[test]
        fn $test() { gradwire_tests::ranks::Over::$over.try_out(super::$test); }
    )*};
}

over! {
    sim: Sim,
    hostile_sim: HostileSim,
    shm: Shm,
    libfabric: Libfabric,
    tcp: Tcp,
}
