//! Operations that are given up while they are under way, after every number of steps: that is when cancellation races with the
//! engine, which still holds the operation's memory.

use gradwire::{Communicator, Error, Max, Sum};
use gradwire_tests::ranks::{Over, run, sums, values};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;

over! {
    Sim, HostileSim, Shm, Tcp:
    a_request_is_dropped_after_every_step,
    a_scope_is_left_by_a_panic_after_every_step,
    the_job_is_aborted_after_every_step,
}

/// One message or one line of a board, and many segments.
const COUNTS: [usize; 2] = [3, 70_000];

/// Every number of steps at first, then ever more, until `give_up` says that the operation had ended before.
fn after_every_step(mut give_up: impl FnMut(usize) -> bool) {
    let mut steps = 0;
    while !give_up(steps) && steps < 1 << 20 {
        steps += 1 + steps / 16;
    }
}

/// Turns the crank a number of times. Whether the operation ended meanwhile.
fn step(steps: usize, has_ended: impl Fn() -> bool) -> bool {
    (0..steps).any(|_| has_ended())
}

/// What one rank found, told to all.
fn told(comm: &Communicator, ended: bool) -> bool {
    let mut flag = [u8::from(ended)];
    comm.all_reduce(&mut flag, Max).unwrap();
    flag[0] == 1
}

/// The memory of a dropped request lives on until its operation has ended; the others get what they wait for.
fn a_request_is_dropped_after_every_step(over: Over) {
    for count in COUNTS {
        run(over, 3, |comm| {
            after_every_step(|steps| {
                let mut ended = false;
                if comm.rank() == 0 {
                    let mut buffer = comm.allocate(count).unwrap();
                    buffer.copy_from_slice(&values(0, count));
                    let request = comm.start_all_reduce(buffer, Sum);
                    ended = step(steps, || request.test());
                    drop(request);
                } else {
                    let mut mine = values(comm.rank(), count);
                    comm.all_reduce(&mut mine, Sum).unwrap();
                    assert!(mine == sums(3, count), "dropped after {steps} steps");
                }
                told(&comm, ended)
            });
        });
    }
}

/// The slice is borrowed until the operation has ended, however the scope is left.
fn a_scope_is_left_by_a_panic_after_every_step(over: Over) {
    for count in COUNTS {
        run(over, 3, |comm| {
            after_every_step(|steps| {
                let (mut mine, mut ended) = (values(comm.rank(), count), false);
                if comm.rank() == 0 {
                    let left = catch_unwind(AssertUnwindSafe(|| {
                        comm.scope(|scope| {
                            let request = scope.all_reduce(&mut mine, Sum);
                            ended = step(steps, || request.test());
                            resume_unwind(Box::new("on purpose"))
                        })
                    }));
                    assert_eq!(left.unwrap_err().downcast_ref(), Some(&"on purpose"));
                } else {
                    comm.all_reduce(&mut mine, Sum).unwrap();
                }
                assert!(mine == sums(3, count), "left after {steps} steps");
                told(&comm, ended)
            });
        });
    }
}

/// Each rank has the sum or the cause. What is out of place at its source stays as it was; nothing is written after the error.
fn the_job_is_aborted_after_every_step(over: Over) {
    for count in COUNTS {
        after_every_step(|steps| {
            let started = Barrier::new(3);
            let ended = run(over, 3, |comm| {
                started.wait();
                let source = values(comm.rank(), count);
                let mut destination = vec![f32::NAN; count];
                let (mut ended, handle) = (false, comm.abort_handle());
                let result = comm.scope(|scope| {
                    let request = scope.all_reduce_into(&source, &mut destination, Sum);
                    if comm.rank() == 0 {
                        ended = step(steps, || request.test());
                        handle.abort("on purpose");
                    }
                    request.wait().1
                });
                match result.and_then(|result| result) {
                    Ok(()) => assert!(destination == sums(3, count), "aborted after {steps} steps"),
                    Err(Error::Aborted { rank: 0, .. }) => {
                        let before: Vec<u32> = destination.iter().map(|value| value.to_bits()).collect();
                        let _ = comm.barrier();
                        assert!(destination.iter().map(|value| value.to_bits()).eq(before));
                    }
                    // It left before this rank heard of the abort.
                    Err(Error::PeerLost { .. }) => {}
                    Err(error) => panic!("after {steps} steps: {error}"),
                }
                assert!(source == values(comm.rank(), count));
                ended
            });
            ended[0]
        });
    }
}
