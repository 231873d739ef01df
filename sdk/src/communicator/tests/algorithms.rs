//! Every algorithm, carried out: the proofs of plans say nothing of executors.

use crate::communicator::Communicator;
use crate::in_process::run_tuned;
use crate::plan::{Collective, algorithms};
use crate::select::Tuning;
use crate::{Config, Rank, Sum, transports};

/// Distinct for every rank and element, and exact in sums.
fn values(rank: Rank, count: usize) -> Vec<f32> {
    (0..count).map(|index| ((rank * 7919 + index * 31) % 1009) as f32 - 500.0).collect()
}

/// Sums over the first ranks.
fn sums(ranks: usize, count: usize) -> Vec<f32> {
    let mut sums = vec![0.0; count];
    for rank in 0..ranks {
        sums.iter_mut().zip(values(rank, count)).for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn blocks(comm: &Communicator, count: usize) {
    let (rank, size) = (comm.rank(), comm.size());
    let root = size - 1;
    let counts: Vec<usize> = (0..size).map(|rank| if rank == 1 { 0 } else { count + rank }).collect();
    let total: usize = counts.iter().sum();
    let start: usize = counts[..rank].iter().sum();
    let part = start..start + counts[rank];
    let all: Vec<f32> = (0..size).flat_map(|rank| values(rank, counts[rank])).collect();
    assert!(comm.all_gather_varying(&values(rank, counts[rank])).unwrap().values() == all);
    let gathered = comm.gather_varying(&values(rank, counts[rank]), root).unwrap();
    assert!(gathered.is_none_or(|gathered| gathered.values() == all));
    let scattered = comm.scatter_varying(&values(root, total), &counts, root).unwrap();
    assert!(scattered == values(root, total)[part.clone()]);
    let equal = comm.scatter(&values(root, count * size), root).unwrap();
    assert!(equal == values(root, count * size)[rank * count..(rank + 1) * count]);
    let mut reduced = vec![0.0; counts[rank]];
    comm.reduce_scatter_varying_into(&values(rank, total), &mut reduced, &counts, Sum).unwrap();
    assert!(reduced == sums(size, total)[part]);
    let received = comm.all_to_all_varying(&values(rank, total), &counts).unwrap();
    assert!((0..size).all(|from| received.of(from) == &values(from, total)[start..start + counts[rank]]));
}

fn vectors(comm: &Communicator, count: usize) {
    let (rank, size) = (comm.rank(), comm.size());
    let root = size - 1;
    let mut mine = values(rank, count);
    comm.broadcast(&mut mine, root).unwrap();
    assert!(mine == values(root, count));
    let mut mine = values(rank, count);
    comm.all_reduce(&mut mine, Sum).unwrap();
    assert!(mine == sums(size, count));
    let mut mine = values(rank, count);
    comm.reduce(&mut mine, root, Sum).unwrap();
    assert!(mine == if rank == root { sums(size, count) } else { values(rank, count) });
    let mut mine = values(rank, count);
    comm.scan(&mut mine, Sum).unwrap();
    assert!(mine == sums(rank + 1, count));
    let mut mine = values(rank, count);
    comm.exclusive_scan(&mut mine, Sum).unwrap();
    assert!(mine == if rank == 0 { values(0, count) } else { sums(rank, count) });
}

#[test]
fn every_algorithm_does_what_its_collective_says() {
    let most = Collective::ALL.map(|collective| algorithms(collective).len()).into_iter().max();
    for index in 0..most.unwrap_or(0) {
        let named = Collective::ALL.map(|collective| {
            let algorithms = algorithms(collective);
            format!("{collective}:0-={}", algorithms[index % algorithms.len()].name())
        });
        let tuning: Tuning = named.join(";").parse().unwrap();
        for ranks in [3, 6] {
            let transport = |_| transports::tcp(&Config::default(), None);
            run_tuned(ranks, &tuning, transport, |comm| {
                for count in [3000, 30_000] {
                    blocks(&comm, count);
                    vectors(&comm, count);
                }
            })
            .unwrap();
        }
    }
}
