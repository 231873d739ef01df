//! Collectives of the communicator, over every transport, against a sequential oracle.

use gradwire::{Average, Communicator, Error, Max, Rank, Sum};
use gradwire_transport::Transport;
use gradwire_transport_sim::{Config, Network};

/// Ranks joined by the simulated network.
fn sim<R: Send>(ranks: usize, config: Config, program: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    let network = Network::new(7, config);
    gradwire::run_over(ranks, |_| Ok(Box::new(network.endpoint()) as Box<dyn Transport>), program).unwrap()
}

/// Distinct for every rank and element, and exact in f32 sums.
fn value(rank: Rank, index: usize) -> f32 {
    ((rank * 7919 + index * 31) % 1009) as f32 - 500.0
}

fn values(rank: Rank, count: usize) -> Vec<f32> {
    (0..count).map(|index| value(rank, index)).collect()
}

const COUNTS: [usize; 7] = [0, 1, 2, 7, 1000, 5000, 300_000];

#[test]
fn all_reduce_sums() {
    for ranks in [1, 2, 3, 4, 5] {
        for config in [Config::default(), Config::hostile()] {
            let results = sim(ranks, config, |comm| {
                COUNTS.map(|count| {
                    let mut mine = values(comm.rank(), count);
                    comm.all_reduce(&mut mine, Sum).unwrap();
                    mine
                })
            });
            for (rank, result) in results.iter().enumerate() {
                for (count, result) in COUNTS.iter().zip(result) {
                    let expected: Vec<f32> =
                        (0..*count).map(|i| (0..ranks).map(|r| value(r, i)).sum()).collect();
                    assert!(*result == expected, "{ranks} ranks, rank {rank}, {count} elements");
                }
            }
        }
    }
}

#[test]
fn the_others() {
    for ranks in [1, 2, 3, 4, 5] {
        sim(ranks, Config::hostile(), |comm| {
            let rank = comm.rank();
            for count in [0, 1, 7, 3000, 100_000] {
                for root in [0, ranks - 1] {
                    let mut mine = values(rank, count);
                    comm.broadcast(&mut mine, root).unwrap();
                    assert!(mine == values(root, count), "broadcast");
                    let mut mine = values(rank, count);
                    comm.reduce(&mut mine, root, Max).unwrap();
                    let expected = if rank == root {
                        (0..count).map(|i| (0..ranks).map(|r| value(r, i)).fold(f32::MIN, f32::max)).collect()
                    } else {
                        values(rank, count)
                    };
                    assert!(mine == expected, "reduce");
                    let mut all = vec![0.0; if rank == root { count * ranks } else { 0 }];
                    comm.gather_into(&values(rank, count), &mut all, root).unwrap();
                    let expected: Vec<f32> = (0..ranks).flat_map(|r| values(r, count)).collect();
                    assert!(rank != root || all == expected, "gather");
                }
                let mut all = vec![0.0; count * ranks];
                comm.all_gather_into(&values(rank, count), &mut all).unwrap();
                let expected: Vec<f32> = (0..ranks).flat_map(|r| values(r, count)).collect();
                assert!(all == expected, "all_gather");
                let source = values(rank, count * ranks);
                let mut part = vec![0.0; count];
                comm.reduce_scatter_into(&source, &mut part, Average).unwrap();
                let expected: Vec<f32> = (rank * count..(rank + 1) * count)
                    .map(|i| (0..ranks).map(|r| value(r, i)).sum::<f32>() / ranks as f32)
                    .collect();
                assert!(part == expected, "reduce_scatter");
                comm.barrier().unwrap();
            }
        });
    }
}

#[test]
fn messages() {
    sim(3, Config::hostile(), |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        for count in [0, 1, 1000, 200_000] {
            let mut buffer = vec![0.0_f32; count + 3];
            if rank == 0 {
                for from in 1..size {
                    let received = comm.recv(&mut buffer, from, 5).unwrap();
                    assert_eq!((received.source, received.count), (from, count));
                    assert!(buffer[..count] == values(from, count));
                }
            } else {
                comm.send(&values(rank, count), 0, 5).unwrap();
            }
        }
        comm.send(&[rank as u64], rank, 1).unwrap();
        let mut own = [0_u64];
        comm.recv(&mut own, rank, 1).unwrap();
        assert_eq!(own, [rank as u64]);
    });
}

#[test]
fn mismatches_are_named_on_every_rank() {
    for ranks in [2, 3, 5] {
        for (usual, odd) in [(12, 10), (1000, 1001), (50_000, 50_001)] {
            sim(ranks, Config::default(), |comm| {
                let mut mine = values(comm.rank(), if comm.rank() == 1 { odd } else { usual });
                let before = mine.clone();
                let error = comm.all_reduce(&mut mine, Sum).unwrap_err();
                let Error::Mismatch { calls, .. } = &error else { panic!("{error}") };
                assert_eq!(
                    calls.iter().find(|(_, ranks)| *ranks == [1]).map(|(c, _)| &*c.arguments),
                    Some(&*format!("sum, f32 x {odd}"))
                );
                assert_eq!(calls.len(), 2);
                assert_eq!(mine, before);
                let mut mine = values(comm.rank(), 100);
                comm.all_reduce(&mut mine, Sum).unwrap();
            });
        }
    }
}
