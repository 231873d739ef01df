//! Sums, extremes and scans.

use super::everywhere;
use gradwire::{Laws, Located, Max, MaxLoc, Min, Operation, Product, Reduction, Sum, reduce_local};

/// Pi is the integral of 4 / (1 + x²) from 0 to 1: every rank takes every so manieth strip.
#[test]
fn pi_by_integration() {
    everywhere(|comm| {
        const STRIPS: usize = 10_000;
        let mut steps = [if comm.rank() == 0 { STRIPS as u64 } else { 0 }];
        comm.broadcast(&mut steps, 0).unwrap();
        let strips = steps[0] as usize;
        let own: f64 = (comm.rank()..strips)
            .step_by(comm.size())
            .map(|strip| (strip as f64 + 0.5) / strips as f64)
            .map(|x| 4.0 / (1.0 + x * x))
            .sum();
        let mut pi = [own / strips as f64];
        comm.reduce(&mut pi, 0, Sum).unwrap();
        // The midpoint rule is off by at most the width squared, over 24, times the largest second derivative, 8.
        let bound = 8.0 / 24.0 / (strips * strips) as f64;
        assert!(comm.rank() > 0 || (pi[0] - std::f64::consts::PI).abs() < bound, "{pi:?}");
    });
}

#[test]
fn the_usual_reductions() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank() as u64, comm.size() as u64);
        let mut numbers = [rank + 1, size];
        comm.all_reduce(&mut numbers, Product).unwrap();
        assert_eq!(numbers, [(1..=size).product::<u64>(), size.pow(size as u32)]);
        let mut least = [rank as i32 - 3];
        let mut greatest = [0];
        comm.all_reduce_into(&least, &mut greatest, Max).unwrap();
        comm.reduce(&mut least, 1, Min).unwrap();
        assert_eq!(greatest, [size as i32 - 4]);
        assert_eq!(least, [if rank == 1 { -3 } else { rank as i32 - 3 }]);
        // The largest value, and whose it is.
        let mut winner = [Located::new(if rank == 1 { 9.5_f32 } else { rank as f32 }, rank as u32)];
        comm.all_reduce(&mut winner, MaxLoc).unwrap();
        assert_eq!((winner[0].value(), winner[0].index()), (9.5, 1));
    });
}

#[test]
fn everyone_gets_a_part_of_the_sum() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let source: Vec<u64> = (0..2 * size).map(|index| (rank * index) as u64).collect();
        let mut part = [0; 2];
        comm.reduce_scatter_into(&source, &mut part, Sum).unwrap();
        let ranks: u64 = (0..size as u64).sum();
        assert_eq!(part, [2 * rank, 2 * rank + 1].map(|index| ranks * index as u64));
    });
}

/// The sum of all before this rank says where its elements begin in a common vector.
#[test]
fn scans_give_places() {
    everywhere(|comm| {
        let count = |rank: usize| 3 * rank as u64 + 1;
        let mut end = [count(comm.rank())];
        comm.scan(&mut end, Sum).unwrap();
        assert_eq!(end, [(0..=comm.rank()).map(count).sum::<u64>()]);
        let mut start = [0];
        comm.exclusive_scan_into(&[count(comm.rank())], &mut start, Sum).unwrap();
        assert_eq!(start[0] + count(comm.rank()), end[0]);
    });
}

/// The last contribution that is not zero: depends on the order.
fn last_word() -> impl Reduction<u32> {
    Operation::new("last word", Laws::none().associative(), |said: &mut [u32], next: &[u32]| {
        said.iter_mut().zip(next).filter(|(_, next)| **next != 0).for_each(|(said, next)| *said = *next);
    })
}

#[test]
fn operations_of_users_keep_the_order() {
    everywhere(|comm| {
        let mut said = [comm.rank() as u32 + 1, u32::from(comm.rank() == 0)];
        reduce_local(&[0, 0], &mut said, last_word()).unwrap();
        comm.all_reduce(&mut said, last_word()).unwrap();
        assert_eq!(said, [comm.size() as u32, 1]);
    });
}

/// A matrix by a vector: every rank has some rows, and all get the product.
#[test]
fn a_matrix_times_a_vector() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let entry = |row: usize, column: usize| ((row * 7 + column * 3) % 5) as f64;
        let (own, all) = (2, 2 * size);
        let mut x = vec![0.0; all];
        if rank == 0 {
            x.iter_mut().enumerate().for_each(|(index, x)| *x = index as f64);
        }
        comm.broadcast(&mut x, 0).unwrap();
        let times = |row: usize| (0..all).map(|column| entry(row, column) * x[column]).sum::<f64>();
        let rows: Vec<f64> = (own * rank..own * (rank + 1)).map(times).collect();
        let mut product = vec![0.0; all];
        comm.all_gather_into(&rows, &mut product).unwrap();
        assert_eq!(product, (0..all).map(times).collect::<Vec<_>>());
    });
}
