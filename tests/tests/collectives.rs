//! Collectives of the communicator, over every transport, against a sequential oracle.

use gradwire::{Average, Communicator, Error, Max, Rank, Sum};
use gradwire_tests::ranks::{Over, run, value, values};

const COUNTS: [usize; 7] = [0, 1, 2, 7, 1000, 5000, 300_000];

fn all_reduce_sums(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        let results = run(over, ranks, |comm| {
            COUNTS.map(|count| {
                let mut mine = values(comm.rank(), count);
                comm.all_reduce(&mut mine, Sum).unwrap();
                mine
            })
        });
        for (rank, result) in results.iter().enumerate() {
            for (count, result) in COUNTS.iter().zip(result) {
                let expected: Vec<f32> = (0..*count).map(|i| (0..ranks).map(|r| value(r, i)).sum()).collect();
                assert!(*result == expected, "{over:?}, {ranks} ranks, rank {rank}, {count} elements");
            }
        }
    }
}

fn the_others(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        run(over, ranks, |comm| {
            for count in [0, 1, 7, 3000, 100_000] {
                for root in [0, ranks - 1] {
                    rooted(&comm, count, root);
                }
                unrooted(&comm, count);
            }
        });
    }
}

fn rooted(comm: &Communicator, count: usize, root: Rank) {
    let (rank, ranks) = (comm.rank(), comm.size());
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

fn unrooted(comm: &Communicator, count: usize) {
    let (rank, ranks) = (comm.rank(), comm.size());
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

fn messages(over: Over) {
    run(over, 3, |comm| {
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
        // Too long, and of another type, short and long: refused, and the sender is not held up.
        for count in [2, 100_000] {
            if rank == 0 {
                let mut short = vec![7.0_f32; count - 1];
                assert!(matches!(comm.recv(&mut short, 1, 8).unwrap_err(), Error::Misuse(_)));
                assert!(short.iter().all(|value| *value == 7.0));
                let mut other = vec![7_u32; count];
                assert!(matches!(comm.recv(&mut other, 1, 8).unwrap_err(), Error::Misuse(_)));
                assert!(other.iter().all(|value| *value == 7));
            } else if rank == 1 {
                comm.send(&values(rank, count), 0, 8).unwrap();
                comm.send(&values(rank, count), 0, 8).unwrap();
            }
        }
        comm.send(&[rank as u64], rank, 1).unwrap();
        let mut own = [0_u64];
        comm.recv(&mut own, rank, 1).unwrap();
        assert_eq!(own, [rank as u64]);
    });
}

/// Whoever calls something else is named on every rank, nothing is touched, and the next call works.
fn mismatches(over: Over) {
    for ranks in [2, 3, 5] {
        for (usual, odd) in [(12, 10), (1000, 1001), (50_000, 50_001)] {
            run(over, ranks, |comm| {
                let mut mine = values(comm.rank(), if comm.rank() == 1 { odd } else { usual });
                let before = mine.clone();
                let error = comm.all_reduce(&mut mine, Sum).unwrap_err();
                let Error::Mismatch { calls, .. } = &error else { panic!("{error}") };
                let odd_one = calls.iter().find(|(_, ranks)| *ranks == [1]).map(|(call, _)| &*call.arguments);
                assert_eq!(odd_one, Some(&*format!("sum, f32 x {odd}")));
                assert_eq!(calls.len(), 2);
                assert_eq!(mine, before);
                let mut mine = values(comm.rank(), 100);
                comm.all_reduce(&mut mine, Sum).unwrap();
                assert_eq!(mine[7], (0..ranks).map(|rank| value(rank, 7)).sum::<f32>());
            });
        }
    }
}

fn splits(over: Over) {
    run(over, 5, |comm| {
        let rank = comm.rank();
        let colour = if rank == 4 { None } else { Some(rank as u32 % 2) };
        let half = comm.split(colour, -(rank as i64)).unwrap();
        let other = comm.duplicate().unwrap();
        assert_eq!(half.is_none(), rank == 4);
        if let Some(half) = &half {
            // Ordered by descending rank.
            assert_eq!((half.rank(), half.size()), (usize::from(rank < 2), 2));
            let mut mine = [1 << rank];
            half.all_reduce(&mut mine, Sum).unwrap();
            assert_eq!(mine, [if rank % 2 == 0 { 0b101 } else { 0b1010 }]);
        }
        let mut mine = [1 << rank];
        other.all_reduce(&mut mine, Sum).unwrap();
        assert_eq!(mine, [0b11111]);
        comm.barrier().unwrap();
    });
}

macro_rules! over {
    ($($name:ident: $over:ident,)*) => {$(
        mod $name {
            use gradwire_tests::ranks::Over::$over;

            #[test]
            fn all_reduce_sums() { $over.try_out(super::all_reduce_sums); }
            #[test]
            fn the_others() { $over.try_out(super::the_others); }
            #[test]
            fn messages() { $over.try_out(super::messages); }
            #[test]
            fn mismatches() { $over.try_out(super::mismatches); }
            #[test]
            fn splits() { $over.try_out(super::splits); }
        }
    )*};
}

over! {
    sim: Sim,
    hostile_sim: HostileSim,
    shm: Shm,
    libfabric: Libfabric,
    tcp: Tcp,
}
