//! Communicators of some of the ranks.

use super::everywhere;
use gradwire::{Communicator, Relation, Sum};

#[test]
fn odd_and_even_ranks_part() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let half = comm.split(Some(rank as u32 % 2), 0).unwrap().unwrap();
        assert_eq!((half.rank(), half.size()), (rank / 2, (size + 1 - rank % 2) / 2));
        let mut sum = [rank as u64];
        half.all_reduce(&mut sum, Sum).unwrap();
        assert_eq!(sum, [(rank as u64 % 2..size as u64).step_by(2).sum::<u64>()]);
        // Backwards, and without rank 0.
        let others = comm.split((rank > 0).then_some(0), -(rank as i64)).unwrap();
        assert_eq!(others.map(|others| others.rank()), (rank > 0).then(|| size - 1 - rank));
    });
}

#[test]
fn a_communicator_of_a_group() {
    everywhere(|comm| {
        let all = comm.group();
        let first = all.include([0]).unwrap();
        let others = all.difference(&first).unwrap();
        assert_eq!(others.size(), comm.size() - 1);
        assert_eq!(others.union(&first).unwrap().compare(&all), Relation::Similar);
        assert_eq!(others.intersection(&first).unwrap().size(), 0);
        assert_eq!(others.translate(0, &all), Some(1));
        let made = comm.create(&others).unwrap();
        assert_eq!(made.is_some(), comm.rank() > 0);
        if let Some(made) = made {
            let mut ranks = vec![0; made.size()];
            made.all_gather_into(&[comm.rank() as u32], &mut ranks).unwrap();
            assert_eq!(ranks, (1..comm.size() as u32).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_duplicate_is_a_world_of_its_own() {
    everywhere(|comm| {
        let other = comm.duplicate().unwrap();
        assert_eq!(comm.compare(&other), Relation::Identical);
        let next = (comm.rank() + 1) % comm.size();
        // The same tag on both: each message arrives where it was sent.
        comm.send(&[1_u8], next, 0).unwrap();
        other.send(&[2_u8], next, 0).unwrap();
        let previous = (comm.rank() + comm.size() - 1) % comm.size();
        let mut received = [0_u8; 2];
        other.recv(&mut received[..1], previous, 0).unwrap();
        comm.recv(&mut received[1..], previous, 0).unwrap();
        assert_eq!(received, [2, 1]);
    });
}

#[test]
fn halves_of_a_group_and_its_reverse() {
    everywhere(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let all = comm.group();
        assert_eq!((all.size(), all.rank()), (size, Some(rank)));
        let (first, second) = (all.include(0..size / 2).unwrap(), all.exclude(0..size / 2).unwrap());
        assert_eq!(first.compare(&second), Relation::Different);
        assert!(first.rank().is_some() != second.rank().is_some());
        assert_eq!(first.union(&second).unwrap().compare(&all), Relation::Identical);
        assert_eq!(all.difference(&second).unwrap().compare(&first), Relation::Identical);
        assert_eq!(first.intersection(&second).unwrap().size(), 0);
        let reverse = all.include((0..size).rev()).unwrap();
        assert_eq!(reverse.compare(&all), Relation::Similar);
        assert_eq!(
            (reverse.rank(), all.translate(rank, &reverse)),
            (Some(size - 1 - rank), Some(size - 1 - rank))
        );
    });
}

/// For any communicator, be it the world or a part of it.
fn prefix_sum(comm: &Communicator) -> u64 {
    let mut sum = [comm.rank() as u64];
    comm.scan(&mut sum, Sum).unwrap();
    sum[0]
}

#[test]
fn a_function_takes_any_communicator() {
    everywhere(|comm| {
        let up_to = |rank: usize| (rank * (rank + 1) / 2) as u64;
        assert_eq!(prefix_sum(&comm), up_to(comm.rank()));
        // Each group has a communicator without the others taking part.
        let same = (comm.rank() % 2..comm.size()).step_by(2);
        let part = comm.create_from_group(&comm.group().include(same).unwrap()).unwrap();
        assert_eq!(prefix_sum(&part), up_to(comm.rank() / 2));
    });
}
