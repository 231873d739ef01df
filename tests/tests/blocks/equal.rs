//! Blocks of equal lengths.

use crate::{Tagged, misuse, tagged};
use gradwire::{Communicator, Equivalence, Error, Rank, Sum};
use gradwire_tests::ranks::{Over, run, value, values};
use std::fmt::Debug;

pub(crate) fn all_calls(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        run(over, ranks, |comm| {
            for count in [0, 1, 3, 100, 20_000] {
                moves(&comm, count, value);
                reductions(&comm, count);
            }
            moves(&comm, 700, tagged);
            moves(&comm, 5, |rank, index| (rank * 100 + index) as u8);
            lengths(&comm);
        });
    }
}

fn moves<T: Equivalence + PartialEq + Debug>(comm: &Communicator, count: usize, value: fn(Rank, usize) -> T) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mine = |len| (0..len).map(|index| value(rank, index)).collect::<Vec<T>>();
    let of = |owner: Rank, elements: std::ops::Range<usize>| {
        elements.map(|index| value(owner, index)).collect::<Vec<T>>()
    };
    let all: Vec<T> = (0..ranks).flat_map(|owner| of(owner, 0..count)).collect();
    assert!(comm.all_gather(&mine(count)).unwrap() == all, "all_gather");
    let mut place = vec![value(9, 9); count * ranks];
    place[rank * count..(rank + 1) * count].copy_from_slice(&mine(count));
    comm.all_gather_in_place(&mut place).unwrap();
    assert!(place == all, "all_gather_in_place");
    for root in [0, ranks - 1] {
        let gathered = comm.gather(&mine(count), root).unwrap();
        assert!(gathered == (rank == root).then(|| all.clone()), "gather");
        let source = if rank == root { mine(count * ranks) } else { Vec::new() };
        let part = of(root, rank * count..(rank + 1) * count);
        let mut destination = vec![value(9, 9); count];
        comm.scatter_into(&source, &mut destination, root).unwrap();
        assert!(destination == part, "scatter_into from {root}");
        assert!(comm.scatter(&source, root).unwrap() == part, "scatter from {root}");
    }
    let source = mine(count * ranks);
    let meant: Vec<T> = (0..ranks).flat_map(|from| of(from, rank * count..(rank + 1) * count)).collect();
    let mut destination = vec![value(9, 9); count * ranks];
    comm.all_to_all_into(&source, &mut destination).unwrap();
    assert!(destination == meant, "all_to_all_into");
    assert!(source == mine(count * ranks), "the source of all_to_all_into");
    assert!(comm.all_to_all(&source).unwrap() == meant, "all_to_all");
}

fn reductions(comm: &Communicator, count: usize) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let sum = |index| (0..ranks).map(|rank| value(rank, index)).sum::<f32>();
    let part: Vec<f32> = (rank * count..(rank + 1) * count).map(sum).collect();
    assert!(comm.reduce_scatter(&values(rank, count * ranks), Sum).unwrap() == part, "reduce_scatter");
    for root in [0, ranks - 1] {
        let source = values(rank, count);
        let mut destination = vec![7.0; if rank == root { count } else { 2 }];
        comm.reduce_into(&source, &mut destination, root, Sum).unwrap();
        let expected = if rank == root { (0..count).map(sum).collect() } else { vec![7.0; 2] };
        assert!(destination == expected && source == values(rank, count), "reduce_into {root}");
    }
}

/// Wrong lengths are found before anything is sent: no other rank takes part.
fn lengths(comm: &Communicator) {
    let ranks = comm.size();
    let mut destination = vec![7.0_f32; 3];
    if comm.rank() == 0 {
        misuse(comm.scatter_into(&vec![1.0; 3 * ranks + 1], &mut destination, 0));
        misuse(comm.scatter_into(&vec![1.0; 3 * ranks], &mut destination, ranks));
        misuse(comm.all_to_all_into(&vec![1.0; ranks], &mut vec![1.0; 2 * ranks]));
        misuse(comm.scan_into(&[1.0; 4], &mut destination, Sum));
        misuse(comm.reduce_into(&[1.0; 4], &mut destination, 0, Sum));
        misuse(comm.scatter::<f32>(&[], ranks));
        if ranks > 1 {
            let text = misuse(comm.all_to_all(&vec![1.0; ranks + 1]));
            assert!(text.contains("cannot be shared out equally"), "{text}");
            misuse(comm.reduce_scatter(&vec![1.0; ranks + 1], Sum));
            misuse(comm.all_gather_in_place(&mut vec![1.0; ranks + 1]));
        }
        assert_eq!(destination, [7.0; 3]);
    }
    // Of the root's source all ranks are told.
    if ranks > 1 {
        let text = misuse(comm.scatter(&vec![1.0_f32; 2 * ranks + 1], 0));
        assert!(text.contains("cannot be shared out equally"), "{text}");
    }
    comm.barrier().unwrap();
}

pub(crate) fn mismatches(over: Over) {
    for ranks in [2, 3, 5] {
        for (usual, odd) in [(4, 5), (30_000, 30_001)] {
            run(over, ranks, |comm| mismatch(&comm, if comm.rank() == 1 { odd } else { usual }));
        }
    }
}

fn mismatch(comm: &Communicator, count: usize) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let source = values(rank, count * ranks);
    let untouched = |what: &str, call: &dyn Fn(&mut [f32]) -> Result<(), Error>, len: usize| {
        let mut destination = values(rank + 40, len);
        let error = call(&mut destination).unwrap_err();
        let Error::Mismatch { calls, .. } = &error else { panic!("{what}: {error}") };
        assert!(calls.iter().any(|(_, ranks)| *ranks == [1]), "{what}: {error}");
        assert!(destination == values(rank + 40, len), "{what}");
    };
    untouched("scatter", &|to| comm.scatter_into(&source, to, 0), count);
    untouched("all_to_all", &|to| comm.all_to_all_into(&source, to), count * ranks);
    untouched("scan", &|values| comm.scan(values, Sum), count);
    untouched("exclusive_scan", &|to| comm.exclusive_scan_into(&source[..count], to, Sum), count);
    untouched("all_gather", &|values| comm.all_gather_in_place(values), count * ranks);
    // As many in all, differently shared out.
    let mut counts = vec![count.min(4); ranks];
    counts[usize::from(rank == 1)] += 1;
    let total: usize = counts.iter().sum();
    let source = values(rank, total);
    untouched(
        "all_gather_varying",
        &|to| comm.all_gather_varying_into(&source[..counts[rank]], to, &counts),
        total,
    );
    untouched(
        "reduce_scatter_varying",
        &|to| comm.reduce_scatter_varying_into(&source[..total], to, &counts, Sum),
        counts[rank],
    );
    // Other calls altogether: told before counts are believed.
    let error = if rank == 1 {
        comm.gather_varying(&source, 0).unwrap_err()
    } else {
        comm.all_gather(&[tagged(rank, 1)]).map(|_: Vec<Tagged>| ()).unwrap_err()
    };
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
    assert_eq!(comm.all_gather(&[rank as u64]).unwrap(), (0..ranks as u64).collect::<Vec<_>>());
}
