//! Blocks of any lengths.

use crate::{assert_same, misuse, tagged};
use gradwire::{Communicator, Equivalence, Rank, Sum};
use gradwire_tests::ranks::{Over, run, value, values};
use std::fmt::Debug;

/// Some for all, none for some, all for one, nothing for nobody; short and long.
fn counts(ranks: usize) -> Vec<Vec<usize>> {
    let one_has_all =
        |owner: Rank, count| (0..ranks).map(|rank| if rank == owner { count } else { 0 }).collect();
    vec![
        (0..ranks).map(|rank| 3 + rank).collect(),
        (0..ranks).map(|rank| (rank * 7 + 2) % 3).collect(),
        (0..ranks).map(|rank| (ranks - rank) * 9000 + rank % 2).collect(),
        (0..ranks).map(|rank| if rank % 2 == 0 { 0 } else { 30_000 }).collect(),
        one_has_all(ranks - 1, 50_000),
        one_has_all(0, 2),
        vec![0; ranks],
    ]
}

pub(crate) fn all_calls(over: Over) {
    for ranks in [1, 2, 3, 4, 5] {
        run(over, ranks, |comm| {
            for counts in counts(ranks) {
                gathers(&comm, &counts, value);
                scatters(&comm, &counts);
                exchanges(&comm, &counts);
            }
            gathers(&comm, &counts(ranks)[0], tagged);
        });
    }
}

fn gathers<T: Equivalence + PartialEq + Debug>(
    comm: &Communicator,
    counts: &[usize],
    value: fn(Rank, usize) -> T,
) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let of = |rank: Rank| (0..counts[rank]).map(|index| value(rank, index)).collect::<Vec<T>>();
    let all: Vec<T> = (0..ranks).flat_map(of).collect();
    let gathered = comm.all_gather_varying(&of(rank)).unwrap();
    assert_eq!(gathered.counts(), counts);
    assert!((0..ranks).all(|rank| gathered.of(rank) == of(rank)) && gathered.values() == all);
    assert!(gathered.of(ranks).is_empty());
    let mut destination = vec![value(9, 9); all.len()];
    comm.all_gather_varying_into(&of(rank), &mut destination, counts).unwrap();
    assert!(destination == all, "all_gather_varying_into {counts:?}");
    for root in [0, ranks - 1] {
        let gathered = comm.gather_varying(&of(rank), root).unwrap();
        assert_eq!(gathered.is_some(), rank == root);
        assert!(gathered.is_none_or(|gathered| gathered.values() == all && gathered.counts() == counts));
        let mut destination = vec![value(9, 9); if rank == root { all.len() } else { 1 }];
        assert_eq!(comm.gather_varying_into(&of(rank), &mut destination, root).unwrap(), counts);
        assert!(destination == if rank == root { all.clone() } else { vec![value(9, 9)] }, "{counts:?}");
    }
}

fn scatters(comm: &Communicator, counts: &[usize]) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let total: usize = counts.iter().sum();
    let start: usize = counts[..rank].iter().sum();
    let part = start..start + counts[rank];
    for root in [0, ranks - 1] {
        let (source, known) =
            if rank == root { (values(root, total), counts) } else { (Vec::new(), &[][..]) };
        let expected = &values(root, total)[part.clone()];
        assert!(comm.scatter_varying(&source, known, root).unwrap() == expected, "{counts:?}");
        let mut destination = vec![7.0; counts[rank]];
        comm.scatter_varying_into(&source, &mut destination, known, root).unwrap();
        assert!(destination == expected, "scatter_varying_into {counts:?}");
    }
    let mut destination = vec![7.0; counts[rank]];
    comm.reduce_scatter_varying_into(&values(rank, total), &mut destination, counts, Sum).unwrap();
    let expected: Vec<f32> = part.map(|index| (0..ranks).map(|rank| value(rank, index)).sum()).collect();
    assert!(destination == expected, "reduce_scatter_varying_into {counts:?}");
}

fn exchanges(comm: &Communicator, counts: &[usize]) {
    let (rank, ranks) = (comm.rank(), comm.size());
    // How many rank `from` has for rank `to`: no two ranks' rows alike.
    let count =
        |from: Rank, to: Rank| counts[(from + 2 * to) % ranks] / 2 + usize::from(counts[to] > 2 && from == 0);
    let block = |from: Rank, to: Rank| (0..count(from, to)).map(move |index| value(from * 16 + to, index));
    let source: Vec<f32> = (0..ranks).flat_map(|to| block(rank, to)).collect();
    let meant: Vec<f32> = (0..ranks).flat_map(|from| block(from, rank)).collect();
    let sent: Vec<usize> = (0..ranks).map(|to| count(rank, to)).collect();
    let received: Vec<usize> = (0..ranks).map(|from| count(from, rank)).collect();
    let result = comm.all_to_all_varying(&source, &sent).unwrap();
    assert!(result.values() == meant && result.counts() == received, "all_to_all_varying {counts:?}");
    let mut destination = vec![7.0; meant.len()];
    comm.all_to_all_varying_into(&source, &sent, &mut destination, &received).unwrap();
    assert!(destination == meant, "all_to_all_varying_into {counts:?}");
}

pub(crate) fn unfit(over: Over) {
    for ranks in [2, 3, 5] {
        run(over, ranks, |comm| {
            told(&comm);
            local(&comm);
            assert_eq!(comm.all_gather(&[comm.rank() as u64]).unwrap().len(), ranks);
        });
    }
}

/// Mistakes of one rank that all are told of.
fn told(comm: &Communicator) {
    let (rank, ranks) = (comm.rank(), comm.size());
    let same = |text: String, part: &str| {
        assert!(text.contains(part), "{text}");
        assert_same(comm, &text);
    };
    let mut destination = vec![7.0_f32; 3 * ranks];
    let room = if rank == 1 { 3 * ranks - 1 } else { 0 };
    let text = misuse(comm.gather_varying_into(&[1.0, 2.0, 3.0], &mut destination[..room], 1));
    same(
        text,
        &format!(
            "have {} elements together, and the destination of rank 1 has {}",
            3 * ranks,
            room.max(3 * ranks - 1)
        ),
    );

    // The root's counts: too few, together too many, and others than the destinations.
    let source = vec![1.0; 2 * ranks];
    for counts in [vec![2; ranks - 1], vec![3; ranks]] {
        same(misuse(comm.scatter_varying(&source, &counts, 0)), "rank 0 passed do not fit");
        same(
            misuse(comm.scatter_varying_into(&source, &mut destination[..2], &counts, 0)),
            "rank 0 passed do not fit",
        );
    }
    let room = if rank == 1 { 1 } else { 2 };
    let text = misuse(comm.scatter_varying_into(&source, &mut destination[..room], &vec![2; ranks], 0));
    same(text, "2 elements for rank 1, whose destination has 1");

    // One rank's counts of an exchange.
    let sent = if rank == 1 { vec![1; ranks] } else { vec![2; ranks] };
    same(misuse(comm.all_to_all_varying(&source, &sent)), "rank 1 passed do not fit");
    let len = sent.iter().sum();
    let text = misuse(comm.all_to_all_varying_into(
        &source[..len],
        &sent,
        &mut destination[..2 * ranks],
        &vec![2; ranks],
    ));
    same(text, "rank 1 sends 1 elements to rank 0, which expects 2");
    // Too many for any memory.
    let huge = if rank == 1 { vec![usize::MAX, 2 * ranks + 1] } else { vec![2; ranks] };
    misuse(comm.all_to_all_varying(&source, &huge));
    assert!(destination.iter().all(|value| *value == 7.0));
}

/// Mistakes that a rank sees by itself: the others take no part.
fn local(comm: &Communicator) {
    let ranks = comm.size();
    if comm.rank() == 0 {
        let mut destination = vec![7.0_f32; 2 * ranks];
        let text = misuse(comm.all_gather_varying_into(&[1.0; 2], &mut destination, &vec![2; ranks + 1]));
        assert!(text.contains("pass one for each"), "{text}");
        misuse(comm.all_gather_varying_into(&[1.0; 3], &mut destination, &vec![2; ranks]));
        misuse(comm.all_gather_varying_into(&[1.0; 2], &mut destination[1..], &vec![2; ranks]));
        misuse(comm.all_gather_varying_into(&[1.0; 2], &mut destination, &vec![usize::MAX; ranks]));
        misuse(comm.reduce_scatter_varying_into(&vec![1.0; 2 * ranks], &mut [1.0], &vec![2; ranks], Sum));
        misuse(comm.gather_varying(&[1.0], ranks));
        misuse(comm.scatter_varying(&[1.0], &[1], ranks));
        assert!(destination.iter().all(|value| *value == 7.0));
    }
    comm.barrier().unwrap();
}
