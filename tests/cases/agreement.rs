//! Ranks that call different things: all learn who called what, nothing is touched, and the next call works.

use gradwire::{Communicator, Element, Error, Gradient, Max, Rank, Result, Sum, bf16};
use gradwire_tests::ranks::{Over, any_bits, hash, run, sums, values};

over! {
    Sim, Shm, Tcp:
    the_datatype_differs_though_the_bytes_are_as_many,
    the_operation_differs,
    the_collective_differs,
    the_root_differs,
    one_rank_has_nothing,
    only_the_last_chunk_differs,
    the_layouts_of_gradients_differ,
    equal_tensors_in_another_order,
}

/// Has every rank do its part, and sees that every rank learns of all parts. `expected`: what each rank called.
fn disagree(over: Over, expected: &[(&str, &str)], part: impl Fn(&Communicator) -> Result<()> + Sync) {
    run(over, expected.len(), |comm| {
        let error = part(&comm).expect_err("the ranks called different things");
        let Error::Mismatch { calls, .. } = &error else { panic!("{error}") };
        let mut named: Vec<Rank> = calls.iter().flat_map(|(_, ranks)| ranks).copied().collect();
        named.sort_unstable();
        assert_eq!(named, (0..expected.len()).collect::<Vec<_>>(), "every rank once: {error}");
        for (rank, (name, arguments)) in expected.iter().enumerate() {
            let (call, _) = calls.iter().find(|(_, ranks)| ranks.contains(&rank)).unwrap();
            assert_eq!((&*call.name, call.sequence), (*name, 0), "{error}");
            assert!(call.arguments.contains(arguments), "{arguments:?} of rank {rank} in: {error}");
        }
        // The communicator is usable.
        let mut mine = values(comm.rank(), 3000);
        comm.all_reduce(&mut mine, Sum).unwrap();
        assert_eq!(mine, sums(expected.len(), 3000));
    });
}

/// An all_reduce of any bits, which must come back untouched when it fails.
fn all_reduce<T: Element>(comm: &Communicator, count: usize) -> Result<()>
where
    Sum: gradwire::Reduction<T>,
{
    untouched(any_bits::<T>(comm.rank() as u64, count), |values| comm.all_reduce(values, Sum))
}

fn untouched<T: Element>(mut values: Vec<T>, call: impl FnOnce(&mut [T]) -> Result<()>) -> Result<()> {
    let before = hash(&values);
    let result = call(&mut values);
    assert_eq!(hash(&values), before, "a call that fails must not write");
    result
}

/// Case 3.
fn the_datatype_differs_though_the_bytes_are_as_many(over: Over) {
    for scale in [1, 4000] {
        let count = 8 * scale;
        let floats = format!("sum, f32 x {count}");
        let integers = format!("sum, i32 x {count}");
        disagree(over, &[("all_reduce", &floats), ("all_reduce", &integers)], |comm| {
            if comm.rank() == 0 { all_reduce::<f32>(comm, count) } else { all_reduce::<i32>(comm, count) }
        });
        let doubles = format!("sum, f64 x {}", count / 2);
        disagree(over, &[("all_reduce", &doubles), ("all_reduce", &floats)], |comm| {
            if comm.rank() == 1 { all_reduce::<f32>(comm, count) } else { all_reduce::<f64>(comm, count / 2) }
        });
        let halves = format!("sum, bf16 x {count}");
        let expected = [("all_reduce", &*floats), ("all_reduce", &floats), ("all_reduce", &halves)];
        disagree(over, &expected, |comm| {
            if comm.rank() == 2 { all_reduce::<bf16>(comm, count) } else { all_reduce::<f32>(comm, count) }
        });
    }
}

/// Case 4.
fn the_operation_differs(over: Over) {
    for count in [8, 30_000] {
        let [sum, max] = ["sum", "max"].map(|operation| format!("{operation}, f32 x {count}"));
        disagree(over, &[("all_reduce", &sum), ("all_reduce", &max), ("all_reduce", &sum)], |comm| {
            untouched(values(comm.rank(), count), |mine| {
                if comm.rank() == 1 { comm.all_reduce(mine, Max) } else { comm.all_reduce(mine, Sum) }
            })
        });
    }
}

/// Case 4: one after the other paired with whatever the other ranks may call instead.
fn the_collective_differs(over: Over) {
    for count in [8, 30_000] {
        let sum = format!("sum, f32 x {count}");
        let broadcast = format!("f32 x {count}, root 0");
        disagree(over, &[("all_reduce", &sum), ("broadcast", &broadcast)], |comm| {
            untouched(values(comm.rank(), count), |mine| {
                if comm.rank() == 0 { comm.all_reduce(mine, Sum) } else { comm.broadcast(mine, 0) }
            })
        });
        disagree(over, &[("barrier", ""), ("all_reduce", &sum)], |comm| {
            untouched(values(comm.rank(), count), |mine| {
                if comm.rank() == 0 { comm.barrier() } else { comm.all_reduce(mine, Sum) }
            })
        });
        let reduce = format!("sum, f32 x {count}, root 1");
        disagree(over, &[("all_reduce", &sum), ("all_reduce", &sum), ("reduce", &reduce)], |comm| {
            untouched(values(comm.rank(), count), |mine| {
                if comm.rank() == 2 { comm.reduce(mine, 1, Sum) } else { comm.all_reduce(mine, Sum) }
            })
        });
    }
    disagree(over, &[("split", ""), ("duplicate", ""), ("barrier", "")], |comm| match comm.rank() {
        0 => comm.split(Some(3), 0).map(drop),
        1 => comm.duplicate().map(drop),
        _ => comm.barrier(),
    });
}

fn the_root_differs(over: Over) {
    for count in [8, 30_000] {
        let [zero, two] = [0, 2].map(|root| format!("f32 x {count}, root {root}"));
        disagree(over, &[("broadcast", &zero), ("broadcast", &zero), ("broadcast", &two)], |comm| {
            let root = if comm.rank() == 2 { 2 } else { 0 };
            untouched(values(comm.rank(), count), |mine| comm.broadcast(mine, root))
        });
    }
}

/// Case 95: no elements on one rank are a call like any other.
fn one_rank_has_nothing(over: Over) {
    let expected =
        [("all_reduce", "sum, f64 x 5"), ("all_reduce", "sum, f64 x 0"), ("all_reduce", "sum, f64 x 5")];
    disagree(over, &expected, |comm| all_reduce::<f64>(comm, if comm.rank() == 1 { 0 } else { 5 }));
}

/// Case 1: one element more of very many, so that all chunks but the last are equal.
fn only_the_last_chunk_differs(over: Over) {
    let count = 1_000_000;
    let [usual, odd] = [count, count + 1].map(|count| format!("sum, f32 x {count}"));
    disagree(over, &[("all_reduce", &usual), ("all_reduce", &odd), ("all_reduce", &usual)], |comm| {
        all_reduce::<f32>(comm, count + usize::from(comm.rank() == 1))
    });
}

#[derive(Gradient)]
struct Two {
    a: Vec<f32>,
    b: Vec<f32>,
}

#[derive(Gradient)]
struct Renamed {
    a: Vec<f32>,
    c: Vec<f32>,
}

#[derive(Gradient)]
struct Averaged {
    a: Vec<f32>,
    #[gradient(reduce = Average)]
    b: Vec<f32>,
}

/// Cases 1, 6 and 67: the same bytes under another name, another operation, or cut elsewhere.
fn the_layouts_of_gradients_differ(over: Over) {
    for count in [4, 20_000] {
        let tensors = |rank: Rank| (values(rank, count), values(rank + 10, count));
        let expected = [("all_reduce_gradient", ""); 2];
        disagree(over, &expected, |comm| {
            let (a, b) = tensors(comm.rank());
            if comm.rank() == 0 {
                let mut model = Two { a, b };
                comm.all_reduce_gradient(&mut model).inspect_err(|_| {
                    assert_eq!((model.a, model.b), tensors(0), "untouched");
                })
            } else {
                let mut model = Renamed { a, c: b };
                comm.all_reduce_gradient(&mut model).inspect_err(|_| {
                    assert_eq!((model.a, model.c), tensors(1), "untouched");
                })
            }
        });
        disagree(over, &expected, |comm| {
            let (a, b) = tensors(comm.rank());
            if comm.rank() == 0 {
                comm.all_reduce_gradient(&mut Two { a, b })
            } else {
                comm.all_reduce_gradient(&mut Averaged { a, b })
            }
        });
        disagree(over, &expected, |comm| {
            let (mut a, mut b) = tensors(comm.rank());
            if comm.rank() == 1 {
                b.extend(a.pop());
            }
            comm.all_reduce_gradient(&mut Two { a, b })
        });
    }
}

#[derive(Gradient)]
struct A {
    first: [f32; 8],
}

#[derive(Gradient)]
struct B {
    second: [f32; 8],
}

/// Case 6: tensors as long as each other that become ready in another order on each rank. Under their names they are
/// told apart.
fn equal_tensors_in_another_order(over: Over) {
    disagree(over, &[("all_reduce_gradient", ""); 2], |comm| {
        let tensor = values(comm.rank(), 8).try_into().unwrap();
        if comm.rank() == 0 {
            comm.all_reduce_gradient(&mut A { first: tensor })
        } else {
            comm.all_reduce_gradient(&mut B { second: tensor })
        }
    });
    // In one order they are summed each with its like.
    run(over, 2, |comm| {
        let rank = comm.rank();
        let (mut a, mut b) = (A { first: [rank as f32 + 1.0; 8] }, B { second: [rank as f32 * 10.0; 8] });
        comm.all_reduce_gradient(&mut a).unwrap();
        comm.all_reduce_gradient(&mut b).unwrap();
        assert_eq!((a.first, b.second), ([3.0; 8], [10.0; 8]));
    });
}
