//! Exchanges with neighbours.

use crate::{Tagged, assert_same, misuse, tagged};
use gradwire::{Communicator, Rank};
use gradwire_tests::ranks::{Over, run, value, values};

pub(crate) fn all_calls(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        run(over, ranks, |comm| {
            for count in [0, 1, 300, 30_000] {
                halo(&comm, count);
            }
            star(&comm);
            if ranks > 1 {
                mistakes(&comm);
            }
        });
    }
}

/// On a line: every rank has a left and a right neighbour, but for the ends; and on a single rank itself.
fn halo(comm: &Communicator, count: usize) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut neighbours: Vec<Rank> = if ranks == 1 {
        vec![0]
    } else {
        [rank + 1, rank.wrapping_sub(1)].into_iter().filter(|other| *other < ranks).collect()
    };
    // In any order.
    if rank.is_multiple_of(2) {
        neighbours.reverse();
    }
    // More to the right than to the left.
    let len = |from: Rank, to: Rank| count + usize::from(from < to);
    let sent: Vec<Vec<f32>> = neighbours.iter().map(|to| values(rank * 8 + to, len(rank, *to))).collect();
    let mut received: Vec<Vec<f32>> = neighbours.iter().map(|from| vec![7.0; len(*from, rank)]).collect();
    let sent: Vec<(Rank, &[f32])> = neighbours.iter().copied().zip(sent.iter().map(Vec::as_slice)).collect();
    let mut places: Vec<(Rank, &mut [f32])> =
        neighbours.iter().copied().zip(received.iter_mut().map(Vec::as_mut_slice)).collect();
    comm.neighbour_exchange(&sent, &mut places).unwrap();
    for (from, received) in neighbours.iter().zip(received) {
        assert!(received == values(from * 8 + rank, len(*from, rank)), "{from} to {rank}");
    }
}

/// Everybody sends to rank 0, which sends to nobody; values that are packed.
fn star(comm: &Communicator) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let own = [tagged(rank, 1), tagged(rank, 2)];
    let mut all = vec![tagged(99, 0); if rank == 0 { 2 * ranks } else { 0 }];
    // In descending order: any will do.
    let mut received: Vec<(Rank, &mut [Tagged])> = all.chunks_mut(2).enumerate().rev().collect();
    comm.neighbour_exchange(&[(0, &own)], &mut received).unwrap();
    let expected: Vec<Tagged> = (0..all.len()).map(|index| tagged(index / 2, 1 + index % 2)).collect();
    assert_eq!(all, expected);
}

fn mistakes(comm: &Communicator) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut place = [7.0_f32; 2];
    let own = [value(rank, 0); 2];
    let mut same = |sent: &[(Rank, &[f32])], from: Option<Rank>, len: usize, part: &str| {
        let mut received: Vec<(Rank, &mut [f32])> = from.into_iter().zip(place.chunks_mut(len)).collect();
        let text = misuse(comm.neighbour_exchange(sent, &mut received));
        assert!(text.contains(part), "{text}");
        assert_same(comm, &text);
        assert_eq!(place, [7.0; 2]);
    };
    // Rank 1 expects one of the two elements of rank 0; then none.
    let to_one: &[(Rank, &[f32])] = if rank == 0 { &[(1, &own)] } else { &[] };
    same(to_one, (rank == 1).then_some(0), 1, "rank 0 sends 2 elements to rank 1, which expects 1");
    same(to_one, None, 1, "rank 0 sends 2 elements to rank 1, which expects 0");
    let twice: &[(Rank, &[f32])] = if rank == 1 { &[(0, &own), (0, &own)] } else { &[] };
    same(twice, None, 1, "rank 1 names a neighbour twice");
    let nobody: &[(Rank, &[f32])] = if rank == 1 { &[(ranks, &own)] } else { &[] };
    same(nobody, None, 1, "or one that does not exist");
}
