//! Prefix reductions.

use gradwire::{
    Average, Communicator, Determinism, Equivalence, Laws, Max, Operation, PreMultipliedSum, Rank, Sum, bf16,
};
use gradwire_tests::ranks::{Over, run, value, values};

pub(crate) fn all_calls(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        run(over, ranks, |comm| {
            for count in [0, 1, 7, 1000, 60_000] {
                sums(&comm, count);
            }
            for count in [3, 9000] {
                averages(&comm, count);
                one_fold(&comm, count);
                maps(&comm, count);
            }
            comm.set_determinism(Determinism::Algorithms);
            sums(&comm, 1000);
        });
    }
}

fn sums(comm: &Communicator, count: usize) {
    let rank = comm.rank();
    let sum =
        |below: usize| (0..count).map(move |index| (0..below).map(|rank| value(rank, index)).sum::<f32>());
    let mut mine = values(rank, count);
    comm.scan(&mut mine, Sum).unwrap();
    assert!(mine.into_iter().eq(sum(rank + 1)), "scan of {count}");
    let mut mine = values(rank, count);
    comm.exclusive_scan(&mut mine, Sum).unwrap();
    if rank == 0 {
        assert!(mine == values(0, count), "rank 0 of an exclusive scan");
    } else {
        assert!(mine.into_iter().eq(sum(rank)), "exclusive_scan of {count}");
    }
    let source = values(rank, count);
    let mut destination = vec![7.0; count];
    comm.exclusive_scan_into(&source, &mut destination, Sum).unwrap();
    if rank == 0 {
        assert!(destination == vec![7.0; count], "rank 0 of an exclusive scan");
    } else {
        assert!(destination.iter().copied().eq(sum(rank)), "exclusive_scan_into of {count}");
    }
    comm.scan_into(&source, &mut destination, Max).unwrap();
    let highest = |index| (0..=rank).map(|rank| value(rank, index)).fold(f32::MIN, f32::max);
    assert!(destination.into_iter().eq((0..count).map(highest)), "scan_into of {count}");
    assert!(source == values(rank, count), "the source");
}

/// Of as many ranks as there are up to here.
fn averages(comm: &Communicator, count: usize) {
    let rank = comm.rank();
    let mine = |rank: Rank| (0..count).map(move |index| (rank * 60 + index % 50 * 60) as f32);
    let mean = |below: usize, index: usize| {
        (0..below).map(|rank| (rank * 60 + index % 50 * 60) as f32).sum::<f32>() / below as f32
    };
    let mut values: Vec<f32> = mine(rank).collect();
    comm.scan(&mut values, Average).unwrap();
    assert!(values.into_iter().eq((0..count).map(|index| mean(rank + 1, index))), "average of {count}");
    let mut values: Vec<f32> = mine(rank).collect();
    comm.exclusive_scan(&mut values, Average).unwrap();
    if rank > 0 {
        assert!(values.into_iter().eq((0..count).map(|index| mean(rank, index))), "average before {rank}");
    }
}

/// Sums that lose bits, or are wrong, when a partial result is written as an element.
fn one_fold(comm: &Communicator, count: usize) {
    let rank = comm.rank();
    // 256 and four times 1: in bf16 256 + 1 is 256 again.
    let small = |rank: Rank| if rank == 0 { 256.0 } else { 1.0 };
    let mut mine = vec![bf16::from_f32(small(rank)); count];
    comm.scan(&mut mine, Sum).unwrap();
    let expected = bf16::from_f32((0..=rank).map(small).sum());
    assert!(mine.iter().all(|value| *value == expected), "{:?}, not {expected}", mine.first());
    let mut mine = values(rank, count);
    comm.scan(&mut mine, PreMultipliedSum { factor: 2.0 }).unwrap();
    let sum = |index: usize| (0..=rank).map(|rank| 2.0 * value(rank, index)).sum::<f32>();
    assert!(mine.into_iter().eq((0..count).map(sum)), "pre-multiplied sum");
}

/// `x -> factor * x + offset`, one after the other: not commutative.
#[derive(Equivalence, Clone, Copy, PartialEq, Debug, Default)]
struct Map {
    factor: u64,
    offset: u64,
}

fn after(first: Map, then: Map) -> Map {
    Map {
        factor: first.factor.wrapping_mul(then.factor),
        offset: first.offset.wrapping_mul(then.factor).wrapping_add(then.offset),
    }
}

fn maps(comm: &Communicator, count: usize) {
    let rank = comm.rank();
    let map = |rank: Rank, index: usize| Map { factor: (2 * rank + 3) as u64, offset: (index + rank) as u64 };
    let compose = Operation::new("compose", Laws::none().associative(), |first: &mut [Map], then: &[Map]| {
        first.iter_mut().zip(then).for_each(|(first, then)| *first = after(*first, *then));
    });
    let expected =
        |below: usize, index: usize| (0..below).map(|rank| map(rank, index)).reduce(after).unwrap();
    let mut mine: Vec<Map> = (0..count).map(|index| map(rank, index)).collect();
    comm.scan(&mut mine, compose.clone()).unwrap();
    assert!(mine.into_iter().eq((0..count).map(|index| expected(rank + 1, index))), "composed maps");
    let mut mine: Vec<Map> = (0..count).map(|index| map(rank, index)).collect();
    comm.exclusive_scan(&mut mine, compose).unwrap();
    let below = rank.max(1);
    assert!(mine.into_iter().eq((0..count).map(|index| expected(below, index))), "maps before {rank}");
}
