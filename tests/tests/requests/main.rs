//! Non-blocking operations: owned buffers as futures, borrowed slices in scopes.

mod persistent;
mod structs;
mod telling;

use gradwire::{Average, Buffer, Communicator, Error, Sum, wait_all, wait_any, wait_some};
use gradwire_tests::ranks::{Over, run, sums, values};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

const COUNT: usize = 200_000;

fn fill(comm: &Communicator, buffer: &mut [f32], salt: usize) {
    for (index, value) in buffer.iter_mut().enumerate() {
        *value = ((comm.rank() * 31 + index * 7 + salt) % 101) as f32;
    }
}

fn expected(ranks: usize, index: usize, salt: usize) -> f32 {
    (0..ranks).map(|rank| ((rank * 31 + index * 7 + salt) % 101) as f32).sum()
}

fn check(ranks: usize, buffer: &[f32], salt: usize) {
    assert_eq!(buffer.len(), COUNT);
    assert!(buffer.iter().enumerate().all(|(index, value)| *value == expected(ranks, index, salt)));
}

/// The smallest executor there is.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn buffer(comm: &Communicator, salt: usize) -> Buffer<f32> {
    let mut buffer = comm.allocate(COUNT).unwrap();
    fill(comm, &mut buffer, salt);
    buffer
}

#[test]
fn a_request_is_a_future_that_any_thread_may_run() {
    for ranks in [1, 2, 3] {
        gradwire::run(ranks, |comm| {
            let first = comm.start_all_reduce(buffer(&comm, 1), Sum);
            let second = comm.start_all_reduce(buffer(&comm, 2), Sum);
            let other = std::thread::spawn(move || block_on(second));
            let (reduced, result) = block_on(first);
            result.unwrap();
            check(ranks, &reduced, 1);
            let (reduced, result) = other.join().unwrap();
            result.unwrap();
            check(ranks, &reduced, 2);
        })
        .unwrap();
    }
}

#[test]
fn a_dropped_request_completes_for_the_others() {
    gradwire::run(3, |comm| {
        let request = comm.start_all_reduce(buffer(&comm, 3), Sum);
        if comm.rank() == 1 {
            drop(request);
        } else {
            let (reduced, result) = request.wait();
            result.unwrap();
            check(3, &reduced, 3);
        }
        comm.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn a_scope_waits_for_what_was_started_in_it() {
    gradwire::run(2, |comm| {
        let (mut a, mut b, mut c) = (vec![0.0; COUNT], vec![0.0; COUNT], vec![0.0_f32; 5]);
        fill(&comm, &mut a, 4);
        fill(&comm, &mut b, 5);
        c.fill(comm.rank() as f32);
        comm.scope(|scope| {
            let first = scope.all_reduce(&mut a, Sum);
            std::mem::forget(scope.all_reduce(&mut b, Sum));
            let third = scope.all_reduce(&mut c, Average);
            let (back, result) = third.wait();
            result.unwrap();
            assert_eq!(back, [0.5; 5]);
            let (back, result) = first.wait();
            result.unwrap();
            check(2, back, 4);
        })
        .unwrap();
        check(2, &a, 4);
        check(2, &b, 5);
    })
    .unwrap();
}

const ALL: [Over; 4] = [Over::Sim, Over::HostileSim, Over::Shm, Over::Tcp];

/// Small enough for the call signature's frames, and not.
const COUNTS: [usize; 4] = [0, 3, 1000, 70_000];

/// Elements that are told apart by rank and place.
fn own(comm: &Communicator, count: usize) -> Buffer<f32> {
    let mut buffer = comm.allocate(count).unwrap();
    buffer.copy_from_slice(&values(comm.rank(), count));
    buffer
}

fn gathered(ranks: usize, count: usize) -> Vec<f32> {
    (0..ranks).flat_map(|rank| values(rank, count)).collect()
}

#[test]
fn every_owned_form_does_what_the_blocking_one_does() {
    for over in ALL {
        for ranks in [1, 2, 3] {
            run(over, ranks, |comm| {
                let (rank, root) = (comm.rank(), ranks - 1);
                for count in COUNTS {
                    let total = count * ranks;
                    // All under way at once.
                    let barrier = comm.start_barrier();
                    let broadcast = comm.start_broadcast(own(&comm, count), root);
                    let reduce = comm.start_reduce(own(&comm, count), root, Sum);
                    let all_reduce = comm.start_all_reduce(own(&comm, count), Sum);
                    let all_gather = comm.start_all_gather(own(&comm, count), comm.allocate(total).unwrap());
                    let room = if rank == root { total } else { 0 };
                    let gather = comm.start_gather(own(&comm, count), comm.allocate(room).unwrap(), root);
                    let scatter =
                        comm.start_reduce_scatter(own(&comm, total), comm.allocate(count).unwrap(), Sum);

                    let scan = comm.start_scan(own(&comm, count), Sum);
                    let before = comm.start_exclusive_scan(own(&comm, count), Sum);
                    let dealt = comm.start_scatter(
                        if rank == root { own(&comm, total) } else { Buffer::default() },
                        comm.allocate(count).unwrap(),
                        root,
                    );
                    let exchange = comm.start_all_to_all(own(&comm, total), comm.allocate(total).unwrap());
                    let counts: Vec<usize> = (0..ranks).map(|rank| (rank + 1) * count % 997).collect();
                    let varying = comm.start_all_gather_varying(
                        own(&comm, counts[rank]),
                        comm.allocate(counts.iter().sum()).unwrap(),
                        &counts,
                    );

                    let ((_, all), result) = varying.wait();
                    result.unwrap();
                    let expected = counts.iter().enumerate().flat_map(|(rank, count)| values(rank, *count));
                    assert!(all.iter().copied().eq(expected));
                    let ((_, blocks), result) = exchange.wait();
                    result.unwrap();
                    let expected =
                        (0..ranks).flat_map(|from| values(from, total)[rank * count..][..count].to_vec());
                    assert!(blocks.iter().copied().eq(expected));
                    let ((_, block), result) = dealt.wait();
                    result.unwrap();
                    assert!(block[..] == values(root, total)[rank * count..][..count]);
                    let (summed, result) = before.wait();
                    result.unwrap();
                    assert!(summed[..] == if rank == 0 { values(0, count) } else { sums(rank, count) });
                    let (summed, result) = scan.wait();
                    result.unwrap();
                    assert!(summed[..] == sums(rank + 1, count));
                    let ((source, part), result) = scatter.wait();
                    result.unwrap();
                    assert!(part[..] == sums(ranks, total)[rank * count..][..count]);
                    assert!(source[..] == values(rank, total));
                    let ((_, all), result) = gather.wait();
                    result.unwrap();
                    assert!(rank != root || all[..] == gathered(ranks, count));
                    let ((_, all), result) = all_gather.wait();
                    result.unwrap();
                    assert!(all[..] == gathered(ranks, count));
                    let (reduced, result) = all_reduce.wait();
                    result.unwrap();
                    assert!(reduced[..] == sums(ranks, count));
                    let (reduced, result) = reduce.wait();
                    result.unwrap();
                    let expected = if rank == root { sums(ranks, count) } else { values(rank, count) };
                    assert!(reduced[..] == expected);
                    let (copied, result) = broadcast.wait();
                    result.unwrap();
                    assert!(copied[..] == values(root, count));
                    barrier.wait().1.unwrap();
                }
            });
        }
    }
}

#[test]
fn every_scoped_form_does_what_the_blocking_one_does() {
    for over in ALL {
        for ranks in [1, 2, 3] {
            run(over, ranks, |comm| {
                let (rank, root) = (comm.rank(), ranks / 2);
                for count in COUNTS {
                    let total = count * ranks;
                    let mine = values(rank, count);
                    let [mut broadcast, mut reduce, mut all_reduce] = [(); 3].map(|()| mine.clone());
                    let (mut into, mut part) = (vec![0.0; count], vec![0.0; count]);
                    let (mut all, mut at_root) = (vec![0.0; total], vec![0.0; total]);
                    let [mut scan, mut before, mut reduced_into, mut block] =
                        [(); 4].map(|()| vec![0.0; count]);
                    let (mut blocks, mut varying) = (vec![0.0; total], vec![0.0; total]);
                    let mut in_place = vec![0.0; total];
                    in_place[rank * count..][..count].copy_from_slice(&mine);
                    let counts = vec![count; ranks];
                    comm.scope(|scope| {
                        // The scope waits for them; one is waited for inside, out of order.
                        let _ = scope.barrier();
                        let _ = scope.broadcast(&mut broadcast, root);
                        let _ = scope.reduce(&mut reduce, root, Sum);
                        let first = scope.all_reduce(&mut all_reduce, Sum);
                        let _ = scope.all_reduce_into(&mine, &mut into, Sum);
                        let _ = scope.all_gather_into(&mine, &mut all);
                        let _ = scope.gather_into(&mine, &mut at_root, root);
                        let _ = scope.reduce_scatter_into(&values(rank, total), &mut part, Sum);
                        let _ = scope.scan_into(&mine, &mut scan, Sum);
                        let _ = scope.exclusive_scan_into(&mine, &mut before, Sum);
                        let _ = scope.reduce_into(&mine, &mut reduced_into, root, Sum);
                        let _ = scope.scatter_into(&values(rank, total), &mut block, root);
                        let _ = scope.all_to_all_into(&values(rank, total), &mut blocks);
                        let _ = scope.all_gather_varying_into(&mine, &mut varying, &counts);
                        let _ = scope.all_gather_in_place(&mut in_place);
                        let (reduced, result) = first.wait();
                        result.unwrap();
                        assert!(*reduced == sums(ranks, count));
                    })
                    .unwrap();
                    assert!(broadcast == values(root, count));
                    assert!(reduce == if rank == root { sums(ranks, count) } else { mine.clone() });
                    assert!(into == sums(ranks, count));
                    assert!(scan == sums(rank + 1, count));
                    assert!(before == if rank == 0 { vec![0.0; count] } else { sums(rank, count) });
                    assert!(reduced_into == if rank == root { sums(ranks, count) } else { vec![0.0; count] });
                    assert!(block == values(root, total)[rank * count..][..count]);
                    let expected =
                        (0..ranks).flat_map(|from| values(from, total)[rank * count..][..count].to_vec());
                    assert!(blocks.iter().copied().eq(expected));
                    assert!(varying == gathered(ranks, count) && in_place == gathered(ranks, count));
                    assert!(all == gathered(ranks, count));
                    assert!(at_root == if rank == root { gathered(ranks, count) } else { vec![0.0; total] });
                    assert!(part == sums(ranks, total)[rank * count..][..count]);
                }
            });
        }
    }
}

/// Whether a call is waited for is nobody else's business, also where the others would meet in shared memory.
#[test]
fn a_blocking_call_meets_one_that_is_not() {
    for over in ALL {
        run(over, 3, |comm| {
            for round in 0..30 {
                let count = COUNTS[round % COUNTS.len()];
                let mut values = values(comm.rank(), count);
                if round % 3 == comm.rank() || round % 5 == 4 {
                    comm.all_reduce(&mut values, Sum).unwrap();
                } else if round % 2 == 0 {
                    comm.scope(|scope| drop(scope.all_reduce(&mut values, Sum))).unwrap();
                } else {
                    let (reduced, result) = comm.start_all_reduce(own(&comm, count), Sum).wait();
                    result.unwrap();
                    values.copy_from_slice(&reduced);
                }
                assert!(values == sums(3, count), "round {round} over {over:?}");
            }
        });
    }
}

/// A call that is under way is followed by one in which everybody waits.
#[test]
fn calls_keep_their_order_whoever_waits() {
    for over in ALL {
        run(over, 3, |comm| {
            for count in COUNTS {
                let mut values = values(comm.rank(), count);
                let requests: Vec<_> =
                    (0..3).map(|_| comm.start_all_reduce(own(&comm, count), Sum)).collect();
                comm.broadcast(&mut values, 1).unwrap();
                for (reduced, result) in wait_all(requests) {
                    result.unwrap();
                    assert!(reduced[..] == sums(3, count));
                }
                assert!(values == gradwire_tests::ranks::values(1, count));
            }
        });
    }
}

/// And where the calls differ, everybody is told, whether it waits or not.
#[test]
fn a_mismatch_is_told_to_those_who_wait_and_to_those_who_do_not() {
    for over in ALL {
        run(over, 3, |comm| {
            for round in 0..12 {
                let count = COUNTS[1 + round % 3];
                let before = values(comm.rank(), count);
                let mut mine = before.clone();
                let (found, error) = if round % 3 == comm.rank() {
                    let error = comm.broadcast(&mut mine, 0).unwrap_err();
                    (mine, error)
                } else if round % 2 == 0 {
                    let error = comm.all_reduce(&mut mine, Sum).unwrap_err();
                    (mine, error)
                } else {
                    let (buffer, result) = comm.start_all_reduce(own(&comm, count), Sum).wait();
                    (buffer.to_vec(), result.unwrap_err())
                };
                assert!(matches!(&error, Error::Mismatch { calls, .. } if calls.len() == 2), "{error}");
                assert!(found == before, "round {round} over {over:?}");
                // The communicator is as good as before.
                let mut mine = before;
                comm.all_reduce(&mut mine, Sum).unwrap();
                assert!(mine == sums(3, count));
            }
        });
    }
}

#[test]
fn a_call_that_makes_no_sense_gives_the_buffer_back() {
    run(Over::Shm, 2, |comm| {
        let (buffer, result) = comm.start_broadcast(own(&comm, 5), 2).wait();
        assert!(matches!(result, Err(Error::Misuse(_))));
        assert!(buffer[..] == values(comm.rank(), 5));
        let ((source, destination), result) =
            block_on(comm.start_all_gather(own(&comm, 5), comm.allocate(9).unwrap()));
        assert!(matches!(result, Err(Error::Misuse(_))));
        assert_eq!((source.len(), destination.len()), (5, 9));
        let mut short = [0.0; 3];
        let ended = comm.scope(|scope| {
            let (back, result) = scope.all_gather_into(&[1.0, 2.0], &mut short).wait();
            assert!(matches!(result, Err(Error::Misuse(_))));
            assert_eq!(back, [0.0; 3]);
        });
        ended.unwrap();
        // Nobody waited: the scope tells.
        let ended = comm.scope(|scope| drop(scope.all_gather_into(&[1.0, 2.0], &mut short)));
        assert!(matches!(ended, Err(Error::Misuse(_))));
        // Nothing was counted as a call.
        comm.barrier().unwrap();
    });
}

#[test]
fn some_of_many_requests_are_waited_for() {
    for over in ALL {
        run(over, 2, |comm| {
            let mut requests: Vec<_> =
                COUNTS.iter().map(|count| comm.start_all_reduce(own(&comm, *count), Sum)).collect();
            let mut left: Vec<usize> = COUNTS.to_vec();
            let (index, buffer, result) = wait_any(&mut requests).unwrap();
            result.unwrap();
            let count = left.remove(index);
            assert!(buffer[..] == sums(2, count));
            while !requests.is_empty() {
                let ended = wait_some(&mut requests);
                assert!(!ended.is_empty());
                for (index, buffer, result) in ended.into_iter().rev() {
                    result.unwrap();
                    let count = left.remove(index);
                    assert!(buffer[..] == sums(2, count));
                }
            }
            assert!(
                left.is_empty() && wait_any(&mut requests).is_none() && wait_some(&mut requests).is_empty()
            );
        });
    }
}

#[test]
fn a_persistent_call_is_made_again_and_again() {
    for over in ALL {
        run(over, 3, |comm| {
            for count in COUNTS {
                let total = 3 * count;
                let mut reduce = comm.all_reduce_init(own(&comm, count), Sum).unwrap();
                let mut gather =
                    comm.all_gather_init(own(&comm, count), comm.allocate(total).unwrap()).unwrap();
                let mut copy = comm.broadcast_init(own(&comm, count), 2).unwrap();
                for iteration in 0..6 {
                    let shift = iteration as f32;
                    let shifted = |values: Vec<f32>| values.into_iter().map(move |value| value + shift);
                    let mine: Vec<f32> = shifted(values(comm.rank(), count)).collect();
                    reduce.memory_mut().unwrap().copy_from_slice(&mine);
                    gather.memory_mut().unwrap().0.copy_from_slice(&mine);
                    copy.memory_mut().unwrap().copy_from_slice(&mine);
                    if (iteration + comm.rank()) % 2 == 0 {
                        reduce.run().unwrap();
                        gather.run().unwrap();
                        copy.run().unwrap();
                    } else {
                        reduce.start().unwrap();
                        gather.start().unwrap();
                        copy.start().unwrap();
                        // Out of reach until it has ended.
                        assert!(matches!(reduce.memory(), Err(Error::Misuse(_))));
                        assert!(matches!(reduce.memory_mut(), Err(Error::Misuse(_))));
                        assert!(matches!(reduce.start(), Err(Error::Misuse(_))));
                        assert!(matches!(reduce.run(), Err(Error::Misuse(_))));
                        copy.wait().unwrap();
                        gather.wait().unwrap();
                        reduce.wait().unwrap();
                    }
                    let expected: Vec<f32> =
                        sums(3, count).into_iter().map(|sum| sum + 3.0 * shift).collect();
                    assert!(reduce.memory().unwrap()[..] == expected);
                    assert!(gather.memory().unwrap().1.iter().copied().eq(shifted(gathered(3, count))));
                    assert!(copy.memory().unwrap().iter().copied().eq(shifted(values(2, count))));
                }
                // One that is dropped on the way completes for the others.
                reduce.start().unwrap();
                if comm.rank() == 1 {
                    drop(reduce);
                } else {
                    reduce.wait().unwrap();
                }
                // A buffer of another length would be another call.
                *copy.memory_mut().unwrap() = comm.allocate(count + 1).unwrap();
                assert!(matches!(copy.run(), Err(Error::Misuse(_))));
                comm.barrier().unwrap();
            }
        });
    }
}

#[test]
fn a_group_of_calls_is_carried_out_together() {
    for over in ALL {
        run(over, 3, |comm| {
            let rank = comm.rank();
            let [mut a, mut b, mut c] = [3, 0, 40_000].map(|count| values(rank, count));
            let (mut d, mut e) = (values(rank, 500), [rank as i32; 7]);
            comm.grouped(|calls| {
                calls.all_reduce(&mut a, Sum)?;
                calls.all_reduce(&mut e, Sum)?;
                calls.all_reduce(&mut b, Sum)?;
                calls.all_reduce(&mut c, Sum)?;
                calls.all_reduce(&mut d, Sum)
            })
            .unwrap();
            for (found, count) in [(&a, 3), (&b, 0), (&c, 40_000), (&d, 500)] {
                assert!(*found == sums(3, count));
            }
            assert_eq!(e, [3; 7]);
            // The second tensor differs on one rank: nothing is touched on any, not even the first.
            let [mut a, mut b] = [values(rank, 100), values(rank, 20 + usize::from(rank == 1))];
            let (before_a, before_b) = (a.clone(), b.clone());
            let error = comm.grouped(|calls| {
                calls.all_reduce(&mut a, Sum)?;
                calls.all_reduce(&mut b, Average)
            });
            assert!(matches!(error, Err(Error::Mismatch { .. })), "{error:?}");
            assert!(a == before_a && b == before_b);
            comm.grouped(|_| Ok(())).unwrap();
            // Nothing is sent where the program gives up.
            let error = comm.grouped(|_| Err(Error::Misuse("on second thought".into())));
            assert!(matches!(error, Err(Error::Misuse(_))));
            comm.barrier().unwrap();
        });
    }
}
