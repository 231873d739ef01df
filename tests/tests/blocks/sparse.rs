//! Sparse reductions.

use crate::{assert_same, misuse};
use gradwire::{Average, Communicator, Error, Max, Rank, Sparse, Sum};
use gradwire_tests::ranks::{Over, Random, run, value};

pub(crate) fn all_calls(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        run(over, ranks, |comm| {
            for (length, count, width) in
                [(1, 0, 1), (1, 1, 1), (50, 30, 1), (10_000, 4000, 1), (3000, 500, 16)]
            {
                dense(&comm, length, count, width);
            }
            operations(&comm);
            mistakes(&comm);
        });
    }
}

/// The indices of a rank, with repetitions and in no order: rank 1 has none.
fn indices(rank: Rank, length: usize, count: usize) -> Vec<usize> {
    let mut random = Random::new(rank as u64 + 3);
    let count = if rank == 1 { 0 } else { count };
    (0..count).map(|_| random.below(length as u64) as usize).collect()
}

/// As if all elements were there.
fn dense(comm: &Communicator, length: usize, count: usize, width: usize) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let row = |rank: Rank, place: usize| (0..width).map(move |column| value(rank, place * width + column));
    let mut expected: Vec<Option<Vec<f32>>> = vec![None; length];
    for rank in 0..ranks {
        for (place, index) in indices(rank, length, count).into_iter().enumerate() {
            let sum = expected[index].get_or_insert_with(|| vec![0.0; width]);
            sum.iter_mut().zip(row(rank, place)).for_each(|(sum, value)| *sum += value);
        }
    }
    let mine = indices(rank, length, count);
    let values: Vec<f32> = (0..mine.len()).flat_map(|place| row(rank, place)).collect();
    let sum = comm.sparse_all_reduce(length, &mine, &values, Sum).unwrap();
    let there = || expected.iter().enumerate().filter_map(|(index, row)| Some((index, row.as_ref()?)));
    assert_eq!(sum.indices, there().map(|(index, _)| index).collect::<Vec<_>>());
    assert!(sum.values == there().flat_map(|(_, row)| row.clone()).collect::<Vec<_>>(), "{length} {count}");
}

fn operations(comm: &Communicator) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let highest = comm.sparse_all_reduce(9, &[4, 4], &[rank as i32, -1], Max).unwrap();
    assert_eq!(highest, Sparse { indices: vec![4], values: vec![ranks as i32 - 1] });
    // Ranks that have nothing there count.
    let mean = if rank == 0 {
        comm.sparse_all_reduce(9, &[8], &[ranks as f64 * 2.0], Average)
    } else {
        comm.sparse_all_reduce(9, &[], &[], Average)
    };
    assert_eq!(mean.unwrap(), Sparse { indices: vec![8], values: vec![2.0] });
}

fn mistakes(comm: &Communicator) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let odd = ranks - 1;
    let same = |indices: &[usize], values: &[f32], part: &str| {
        let text = misuse(comm.sparse_all_reduce(10, indices, values, Sum));
        assert!(text.contains(part), "{text}");
        assert_same(comm, &text);
    };
    let beyond = if rank == odd { [3, 10] } else { [3, 9] };
    same(&beyond, &[1.0, 2.0], &format!("rank {odd} has index 10, which is not below the length of 10"));
    let values: &[f32] = if rank == odd { &[1.0; 3] } else { &[1.0; 2] };
    same(&[1, 2], values, &format!("rank {odd} has 3 values for 2 indices"));
    if ranks == 1 {
        return;
    }
    let values: &[f32] = if rank == odd { &[1.0; 4] } else { &[1.0; 2] };
    same(&[1, 2], values, &format!("rank {odd} has 2 values for each index, and rank 0 has 1"));
    // The length is part of the call.
    let error = comm.sparse_all_reduce(10 + usize::from(rank == odd), &[1], &[1.0], Sum).unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
}
