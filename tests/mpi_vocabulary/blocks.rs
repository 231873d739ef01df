//! Blocks that are dealt out, collected and exchanged.

use super::everywhere;

#[test]
fn what_is_scattered_can_be_gathered() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let all: Vec<u64> = (0..3 * size as u64).map(|index| index * index).collect();
        let mut own = [0; 3];
        comm.scatter_into(if rank == 1 { &all } else { &[] }, &mut own, 1).unwrap();
        assert_eq!(own, all[3 * rank..][..3]);
        own.iter_mut().for_each(|value| *value += 1);
        let mut collected = vec![0; if rank == 0 { all.len() } else { 0 }];
        comm.gather_into(&own, &mut collected, 0).unwrap();
        assert!(rank > 0 || collected.iter().zip(&all).all(|(found, value)| *found == value + 1));
    });
}

#[test]
fn everyone_has_something_for_everyone() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let source: Vec<u32> = (0..size).map(|to| (100 * rank + to) as u32).collect();
        let mut destination = vec![0; size];
        comm.all_to_all_into(&source, &mut destination).unwrap();
        assert_eq!(destination, (0..size).map(|from| (100 * from + rank) as u32).collect::<Vec<_>>());
    });
}

/// A rank has as many elements as its number, and one.
fn own(rank: usize) -> Vec<i16> {
    vec![rank as i16; rank + 1]
}

#[test]
fn counts_may_differ() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let gathered = comm.all_gather_varying(&own(rank)).unwrap();
        for other in 0..size {
            assert_eq!(gathered.of(other), own(other));
        }
        let root = size - 1;
        let all = comm.gather_varying(&own(rank), root).unwrap();
        assert_eq!(all.is_some(), rank == root);
        assert!(all.is_none_or(|all| all.into_values() == gathered.values()));
        let counts: Vec<usize> = (1..=size).collect();
        let source = if rank == root { gathered.values() } else { &[] };
        let mut back = vec![-1; rank + 1];
        comm.scatter_varying_into(source, &mut back, &counts, root).unwrap();
        assert_eq!(back, own(rank));
    });
}

#[test]
fn blocks_of_any_lengths_are_exchanged() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        // To rank r go r elements, from each.
        let counts: Vec<usize> = (0..size).collect();
        let source: Vec<u8> = (0..size).flat_map(|to| vec![(10 * rank + to) as u8; to]).collect();
        let received = comm.all_to_all_varying(&source, &counts).unwrap();
        for from in 0..size {
            assert_eq!(received.of(from), vec![(10 * from + rank) as u8; rank]);
        }
    });
}
