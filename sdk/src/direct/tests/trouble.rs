//! Ranks that call something else, ranks that are late, ranks that die.

use super::{Member, Shared, Trouble, attach, call, private, ranks, span};
use crate::buffer::Reducer;
use crate::direct::board::{Counter, Payload};
use crate::direct::condition::Of;
use crate::direct::shown::Shown;
use crate::direct::{Condition, Failure, Fold};
use gradwire_schema::operation::{Laws, Operation, Sum};
use gradwire_schema::{CallSignature, Collective};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type Verdict = Result<(), Failure<Trouble>>;

fn all_reduce(member: &mut Member, values: &mut [f32], signature: &CallSignature) -> Verdict {
    let reducer = Reducer::new::<f32, _>(&Sum);
    let fold = Fold { reducer: &reducer, element_size: 4 };
    let memory = span(values);
    member.group.all_reduce(signature, private(memory), memory, fold, &mut member.around)
}

#[test]
fn ranks_that_call_different_things_are_told_and_nothing_is_touched() {
    for size in [2, 3, 4] {
        ranks(size, |member| {
            // In lines, in one round, in many; the odd one with another count, or with another call altogether.
            for (round, (count, other)) in
                [(3, 4), (1000, 1001), (100_000, 99_999), (50, 0), (100_000, 0), (3, 100_000)]
                    .into_iter()
                    .enumerate()
            {
                let odd = round % size;
                let count = if member.rank == odd { other } else { count };
                let mut values: Vec<f32> = (0..count).map(|index| (index + member.rank) as f32).collect();
                let before = values.clone();
                let signature_of = |count: usize| match count {
                    0 => call(Collective::Barrier, 0),
                    count => call(Collective::AllReduce, count),
                };
                let verdict = match count {
                    0 => member.group.exchange(&signature_of(0), &Payload::default(), &mut member.around),
                    count => all_reduce(member, &mut values, &signature_of(count)),
                };
                let Err(Failure::Mismatch(calls)) = verdict else { panic!("{verdict:?}") };
                assert!(values == before, "memory was touched");
                for (rank, found) in calls.into_iter().enumerate() {
                    let usual = [3, 1000, 100_000, 50, 100_000, 3][round];
                    assert_eq!(found, Some(signature_of(if rank == odd { other } else { usual })));
                }
                // The group goes on.
                for count in [2, 5000, 200_000] {
                    let mut values = vec![member.rank as f32 + 1.0; count];
                    assert_eq!(all_reduce(member, &mut values, &signature_of(count)), Ok(()));
                    assert!(values.iter().all(|value| *value == (size * (size + 1) / 2) as f32));
                }
            }
        });
    }
}

#[test]
fn exactly_the_absent_are_named() {
    let done = AtomicUsize::new(0);
    let verdicts = ranks(5, |member| {
        let mut values = vec![1.0; 10];
        assert_eq!(all_reduce(member, &mut values, &call(Collective::AllReduce, 10)), Ok(()));
        if [1, 3].contains(&member.rank) {
            while done.load(Ordering::Relaxed) < 3 {
                std::thread::yield_now();
            }
            return None;
        }
        member.around.patience = Duration::from_millis(200);
        let verdict = all_reduce(member, &mut values, &call(Collective::AllReduce, 10));
        done.fetch_add(1, Ordering::Relaxed);
        assert!(values.iter().all(|value| *value == 5.0), "untouched");
        Some(verdict)
    });
    for (rank, verdict) in verdicts.into_iter().enumerate() {
        let expected = Err(Failure::Environment(Trouble::TimedOut(vec![1, 3])));
        assert_eq!(verdict, (![1, 3].contains(&rank)).then_some(expected));
    }
}

#[test]
fn whoever_stalls_in_the_middle_of_a_call_is_named_and_no_innocent() {
    let done = Arc::new(AtomicUsize::new(0));
    let verdicts = ranks(4, |member| {
        let mut values = vec![1.0_f32; 2_000_000];
        let memory = span(&mut values);
        let signature = call(Collective::AllReduce, 2_000_000);
        member.around.patience = Duration::from_millis(300);
        let reducer = if member.rank == 2 { stalling(done.clone()) } else { Reducer::new::<f32, _>(&Sum) };
        let fold = Fold { reducer: &reducer, element_size: 4 };
        let verdict = member.group.all_reduce(&signature, private(memory), memory, fold, &mut member.around);
        done.fetch_add(1, Ordering::Relaxed);
        verdict
    });
    for (rank, verdict) in verdicts.into_iter().enumerate().filter(|(rank, _)| *rank != 2) {
        assert_eq!(verdict, Err(Failure::Environment(Trouble::TimedOut(vec![2]))), "rank {rank}");
    }
}

/// A sum that, some rounds into a call, does not go on before three ranks are `done`.
fn stalling(done: Arc<AtomicUsize>) -> Reducer {
    let folded = Arc::new(AtomicUsize::new(0));
    let sum = move |left: &mut [f32], right: &[f32]| {
        left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
        if folded.fetch_add(left.len(), Ordering::Relaxed) > 100_000 {
            while done.load(Ordering::Relaxed) < 3 {
                std::thread::yield_now();
            }
        }
    };
    Reducer::new::<f32, _>(&Operation::new("stalling", Laws::none(), sum))
}

#[test]
fn sleepers_are_woken_by_every_kind_of_progress() {
    // So many ranks on so few cores that nearly every wait ends in sleep; a lost wake-up costs 50 ms each.
    let start = Instant::now();
    ranks(6, |member| {
        for step in 0..300 {
            let count = [1, 2000, 40_000][step % 3];
            let mut values = vec![1.0; count];
            assert_eq!(all_reduce(member, &mut values, &call(Collective::AllReduce, count)), Ok(()));
            assert!(values.iter().all(|value| *value == 6.0));
        }
    });
    // Not a measure of speed: half of the waits would have to be lost.
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// Rank 1 sleeps for what rank 0 does then, and rank 0 does nothing afterwards.
fn wakes_the_sleeper(sleep: impl Fn(&mut Member) + Sync, act: impl Fn(&mut Member) + Sync) {
    let done = AtomicBool::new(false);
    ranks(2, |member| {
        if member.rank == 1 {
            sleep(member);
            done.store(true, Ordering::Release);
            return;
        }
        while !member.group.boards.all()[1].is_parked() {
            std::thread::yield_now();
        }
        act(member);
        let start = Instant::now();
        while !done.load(Ordering::Acquire) {
            assert!(start.elapsed() < Duration::from_secs(20), "nobody rang the bell");
            std::thread::yield_now();
        }
    });
}

#[test]
fn whoever_arrives_last_or_leaves_rings_for_those_who_sleep() {
    let barrier = |member: &mut Member| {
        let verdict =
            member.group.exchange(&call(Collective::Barrier, 0), &Payload::default(), &mut member.around);
        assert_eq!(verdict, Ok(()));
    };
    wakes_the_sleeper(barrier, barrier);
    wakes_the_sleeper(
        |member| {
            let verdict = member.group.wait(Counter::Consumed, 1, Of::All, &mut member.around);
            assert_eq!(verdict, Ok(()));
        },
        |member| member.group.end_rounds(1, &mut member.around),
    );
}

#[test]
fn what_was_staged_for_a_mismatch_is_not_taken_for_the_next_call() {
    ranks(2, |member| {
        let count = 10_000;
        for round in 0..20 {
            // Rank 0 stages a round, which nobody reads.
            let mut stale = vec![-1.0; count];
            let verdict = match member.rank {
                0 => all_reduce(member, &mut stale, &call(Collective::AllReduce, count)),
                _ => member.group.exchange(
                    &call(Collective::Barrier, 0),
                    &Payload::default(),
                    &mut member.around,
                ),
            };
            assert!(matches!(verdict, Err(Failure::Mismatch(_))));
            // Then its memory is shared and rank 1's is not: rank 0 stages only once it knows that.
            let shared = Shared::new(member, count * 4);
            let values: Vec<f32> =
                (0..count).map(|index| (index % 100 + member.rank + round) as f32).collect();
            shared.write(0, &values);
            let mut memory = shared.memory(0..count * 4);
            if member.rank == 1 {
                memory.share = None;
            }
            let reducer = Reducer::new::<f32, _>(&Sum);
            let fold = Fold { reducer: &reducer, element_size: 4 };
            let signature = call(Collective::AllReduce, count);
            let verdict = member.group.all_reduce(&signature, memory, memory.span, fold, &mut member.around);
            assert_eq!(verdict, Ok(()));
            let sums: Vec<f32> = (0..count).map(|index| (2 * (index % 100 + round) + 1) as f32).collect();
            assert!(shared.read::<f32>(0, count) == sums, "round {round}");
        }
    });
}

#[test]
fn memory_that_cannot_be_read_is_explained() {
    for goes_on in [true, false] {
        ranks(2, |member| {
            attach(member);
            let signature = call(Collective::AllReduce, 1000);
            if member.rank == 1 {
                // It shows memory that is not there, and then comes to the next point of the call, or never does.
                let nowhere = Shown::Attached { source: 0, result: 0 };
                let verdict = member.group.exchange(&signature, &nowhere.encode(), &mut member.around);
                assert_eq!(verdict, Ok(()));
                if goes_on {
                    member.group.boards.own().publish_line(2, signature.hash(), &Payload::default());
                }
                return;
            }
            if !goes_on {
                member.around.patience = Duration::from_millis(50);
            }
            match all_reduce(member, &mut [1.0; 1000], &signature) {
                Err(Failure::Corrupt(1, what)) if goes_on => assert!(what.contains("memory"), "{what}"),
                Err(Failure::Environment(Trouble::TimedOut(late))) if !goes_on => assert_eq!(late, [1]),
                verdict => panic!("{verdict:?}"),
            }
        });
    }
}

#[test]
fn a_parked_rank_is_seen_or_sees_what_was_published() {
    ranks(2, |member| {
        let condition = Condition {
            boards: &member.group.boards,
            counter: Counter::Staged,
            value: 1,
            of: Of::All,
            begins: false,
        };
        if member.rank == 0 {
            member.group.boards.own().raise(Counter::Staged, 1);
            while member.group.boards.parked().next().is_none() {
                std::thread::yield_now();
            }
        } else {
            // Whatever it returns: the flag stands until it is taken back.
            let _ = condition.park();
            while !condition.is_ready() {
                std::thread::yield_now();
            }
        }
        member.group.boards.own().raise(Counter::Staged, 1);
    });
}
