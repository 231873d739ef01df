//! Structs of tensors whose calls are started.

use super::{ALL, block_on, own};
use gradwire::{Communicator, Error, Gradient, Sum, wait_any};
use gradwire_tests::ranks::run;

/// Four kinds of buckets. Longer arrays than have a `Default`.
#[derive(Gradient, Clone, PartialEq, Debug)]
#[gradient(reduce = Average)]
struct Model {
    long: Vec<f32>,
    #[gradient(wire = bf16)]
    rounded: [f32; 100],
    bias: [[f32; 3]; 50],
    #[gradient(reduce = Max)]
    norm: f32,
    #[gradient(reduce = Sum)]
    samples: u64,
    #[gradient(skip)]
    step: usize,
}

/// Linear in the rank, and small integers: averages over 1 and 3 ranks are exact, also in bf16. `salt` is even.
fn model(rank: usize, long: usize, salt: usize) -> Model {
    let value = |index: usize| (rank * 2 + index % 97 + salt) as f32;
    Model {
        long: (0..long).map(value).collect(),
        rounded: std::array::from_fn(value),
        bias: std::array::from_fn(|row| std::array::from_fn(|column| value(3 * row + column))),
        norm: [3.0, 9.0, 5.0][rank] + salt as f32,
        samples: (10 + rank + salt) as u64,
        step: rank,
    }
}

/// What an all_reduce makes of it: the mean is what rank 1 of 3 has.
fn reduced(comm: &Communicator, long: usize, salt: usize) -> Model {
    let ranks = comm.size();
    Model {
        norm: if ranks == 1 { 3.0 } else { 9.0 } + salt as f32,
        samples: (0..ranks).map(|rank| (10 + rank + salt) as u64).sum(),
        step: comm.rank(),
        ..model(ranks / 2, long, salt)
    }
}

const LONG: [usize; 3] = [0, 300, 120_000];

#[test]
fn an_owned_struct_comes_back_with_its_result() {
    for over in ALL {
        for ranks in [1, 3] {
            run(over, ranks, |comm| {
                let (rank, root) = (comm.rank(), ranks - 1);
                for long in LONG {
                    // Several at once, with others between them.
                    let first = comm.start_all_reduce_gradient(model(rank, long, 0));
                    let other = comm.start_all_reduce(own(&comm, 1000), Sum);
                    let second = comm.start_all_reduce_gradient(model(rank, long, 40));
                    let to_root = comm.start_reduce_gradient(model(rank, long, 2), root);
                    let copied = comm.start_broadcast_gradient(model(rank, long, 4), root);
                    let (found, result) = copied.wait();
                    result.unwrap();
                    assert!(found == Model { step: rank, ..model(root, long, 4) });
                    let (found, result) = to_root.wait();
                    result.unwrap();
                    let expected = if rank == root { reduced(&comm, long, 2) } else { model(rank, long, 2) };
                    assert!(found == expected, "{over:?}");
                    let (found, result) = block_on(second);
                    result.unwrap();
                    assert!(found == reduced(&comm, long, 40));
                    other.wait().1.unwrap();
                    let (found, result) = first.wait();
                    result.unwrap();
                    assert!(found == reduced(&comm, long, 0));
                }
            });
        }
    }
}

#[test]
fn a_lent_struct_has_its_result_when_the_scope_ends() {
    for over in ALL {
        for ranks in [1, 3] {
            run(over, ranks, |comm| {
                let rank = comm.rank();
                for long in LONG {
                    let [mut first, mut second, mut third, mut fourth] =
                        [0, 2, 4, 6].map(|salt| model(rank, long, salt));
                    comm.scope(|scope| {
                        let _ = scope.all_reduce_gradient(&mut first);
                        let waited_for = scope.all_reduce_gradient(&mut second);
                        let _ = scope.reduce_gradient(&mut third, 0);
                        std::mem::forget(scope.broadcast_gradient(&mut fourth, 0));
                        let (second, result) = waited_for.wait();
                        result.unwrap();
                        assert!(*second == reduced(&comm, long, 2));
                    })
                    .unwrap();
                    assert!(first == reduced(&comm, long, 0));
                    let expected = if rank == 0 { reduced(&comm, long, 4) } else { model(rank, long, 4) };
                    assert!(third == expected);
                    assert!(fourth == Model { step: rank, ..model(0, long, 6) });
                }
            });
        }
    }
}

/// Where structs differ nothing is touched, whatever number of buckets they have; and no blocking form is met. The
/// communicator is as good as before.
#[test]
fn structs_that_differ_are_a_mismatch_on_all_ranks() {
    #[derive(Gradient, Clone, PartialEq, Debug)]
    #[gradient(reduce = Sum)]
    struct Other {
        values: Vec<f32>,
    }
    for over in ALL {
        run(over, 3, |comm| {
            let rank = comm.rank();
            let usual = || model(rank, 300, 0);
            for odd in 0..3 {
                let error = match (odd, rank) {
                    (0, 1) => {
                        let request = comm.start_all_reduce_gradient(model(rank, 301, 0));
                        let (found, result) = request.wait();
                        assert!(found == model(rank, 301, 0));
                        result.unwrap_err()
                    }
                    (1, 1) => {
                        let request = comm.start_all_reduce_gradient(Other { values: vec![1.0; 9] });
                        let (found, result) = request.wait();
                        assert_eq!(found.values, [1.0; 9]);
                        result.unwrap_err()
                    }
                    (2, 1) => comm.all_reduce_gradient(&mut usual()).unwrap_err(),
                    _ => {
                        let (found, result) = comm.start_all_reduce_gradient(usual()).wait();
                        assert!(found == usual());
                        result.unwrap_err()
                    }
                };
                assert!(matches!(&error, Error::Mismatch { calls, .. } if calls.len() == 2), "{error}");
                let (found, result) = comm.start_all_reduce_gradient(usual()).wait();
                result.unwrap();
                assert!(found == reduced(&comm, 300, 0));
            }
            let (found, result) = comm.start_broadcast_gradient(usual(), 3).wait();
            assert!(found == usual() && matches!(result, Err(Error::Misuse(_))));
            comm.barrier().unwrap();
        });
    }
}

#[test]
fn a_dropped_request_completes_for_the_others() {
    for over in ALL {
        run(over, 3, |comm| {
            let mut requests: Vec<_> =
                [0, 2].map(|salt| comm.start_all_reduce_gradient(model(comm.rank(), 120_000, salt))).into();
            if comm.rank() == 1 {
                drop(requests);
            } else {
                while let Some((_, found, result)) = wait_any(&mut requests) {
                    result.unwrap();
                    let salt = (found.samples as usize - 33) / 3;
                    assert!(found == reduced(&comm, 120_000, salt));
                }
            }
            comm.barrier().unwrap();
        });
    }
}

#[test]
fn a_persistent_call_on_a_struct_takes_new_lengths_every_time() {
    for over in ALL {
        run(over, 3, |comm| {
            let rank = comm.rank();
            let mut reduce = comm.all_reduce_gradient_init(model(rank, 0, 0));
            let mut copy = comm.broadcast_gradient_init(model(rank, 0, 0), 2);
            let mut to_root = comm.reduce_gradient_init(model(rank, 0, 0), 1);
            for iteration in 0..6 {
                let (long, salt) = (LONG[iteration % 3], 2 * iteration);
                for step in [&mut reduce, &mut copy, &mut to_root] {
                    *step.memory_mut().unwrap() = model(rank, long, salt);
                }
                if (iteration + rank) % 2 == 0 {
                    reduce.run().unwrap();
                    copy.run().unwrap();
                    to_root.run().unwrap();
                } else {
                    reduce.start().unwrap();
                    copy.start().unwrap();
                    to_root.start().unwrap();
                    assert!(matches!(reduce.memory_mut(), Err(Error::Misuse(_))));
                    to_root.wait().unwrap();
                    copy.wait().unwrap();
                    reduce.wait().unwrap();
                }
                assert!(*reduce.memory().unwrap() == reduced(&comm, long, salt));
                assert!(*copy.memory().unwrap() == Model { step: rank, ..model(2, long, salt) });
                let expected = if rank == 1 { reduced(&comm, long, salt) } else { model(rank, long, salt) };
                assert!(*to_root.memory().unwrap() == expected);
            }
            reduce.start().unwrap();
            if rank == 0 {
                drop(reduce);
            } else {
                reduce.wait().unwrap();
            }
            assert!(comm.broadcast_gradient_init(model(rank, 0, 0), 3).run().is_err());
            comm.barrier().unwrap();
        });
    }
}
