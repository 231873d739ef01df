//! Every collective, over counts around all borders, for private and for shared memory.

use super::{Member, Shared, call, in_both_ways, private, ranks, span};
use crate::buffer::Reducer;
use crate::direct::board::Payload;
use crate::direct::{Fold, Places};
use gradwire_schema::operation::{Laws, Max, Operation, Sum};
use gradwire_schema::{Collective, Element, Reduction};

/// Around a line (48 and 112 bytes), the worth of sharing (256), one round, several rounds and all slots.
fn counts(size: usize) -> Vec<usize> {
    vec![0, 1, size - 1, size, size + 1, 6, 13, 14, 15, 28, 29, 64, 65, 999, 4097, 20_011, 70_003]
}

/// Differs by rank and by element; sums of a few stay exact in every type.
pub(super) fn value(rank: usize, index: usize) -> i64 {
    ((rank * 31 + index * 7) % 23) as i64 - 11 + (index % 3) as i64
}

pub(super) trait Number: Element {
    fn of(value: i64) -> Self;
}

impl Number for f32 {
    fn of(value: i64) -> Self {
        value as Self
    }
}

impl Number for f64 {
    fn of(value: i64) -> Self {
        value as Self
    }
}

impl Number for i8 {
    fn of(value: i64) -> Self {
        value as Self
    }
}

impl Number for u64 {
    fn of(value: i64) -> Self {
        value as Self
    }
}

pub(super) fn contribution<T: Number>(rank: usize, count: usize) -> Vec<T> {
    (0..count).map(|index| T::of(value(rank, index))).collect()
}

fn sum<T: Number>(size: usize, count: usize) -> Vec<T> {
    (0..count).map(|index| T::of((0..size).map(|rank| value(rank, index)).sum())).collect()
}

pub(super) fn fold<T: Number>(reducer: &Reducer) -> Fold<'_> {
    Fold { reducer, element_size: size_of::<T>() }
}

fn all_reduce<T: Number + std::fmt::Debug>(member: &mut Member, count: usize, reduction: &impl Reduction<T>) {
    let reducer = Reducer::new::<T, _>(reduction);
    let expected = sum::<T>(member.size, count);
    let signature = call(Collective::AllReduce, count);
    // In place, private.
    let mut values = contribution::<T>(member.rank, count);
    let memory = span(&mut values);
    let result =
        member.group.all_reduce(&signature, private(memory), memory, fold::<T>(&reducer), &mut member.around);
    assert_eq!(result, Ok(()));
    assert!(values == expected, "rank {} of {}: {count} private", member.rank, member.size);
    // Out of place.
    let mut values = contribution::<T>(member.rank, count);
    let mut destination = vec![T::of(77); count];
    let (source, into) = (span(&mut values), span(&mut destination));
    let result =
        member.group.all_reduce(&signature, private(source), into, fold::<T>(&reducer), &mut member.around);
    assert_eq!(result, Ok(()));
    assert!(
        destination == expected && values == contribution::<T>(member.rank, count),
        "{count} out of place"
    );
    // Shared, at a different offset on each rank; then with one rank whose memory is private.
    let offset = 64 * (member.rank + 1);
    let len = count * size_of::<T>();
    let shared = Shared::new(member, offset + len);
    for private in [None, Some(member.size - 1)] {
        shared.write(offset, &contribution::<T>(member.rank, count));
        let mut memory = shared.memory(offset..offset + len);
        if private == Some(member.rank) {
            memory.share = None;
        }
        let result =
            member.group.all_reduce(&signature, memory, memory.span, fold::<T>(&reducer), &mut member.around);
        assert_eq!(result, Ok(()));
        assert!(shared.read::<T>(offset, count) == expected, "{count} shared, {private:?} private");
    }
    // Only the last rank's own last call has ended for sure: an exchange before the memory goes.
    member
        .group
        .exchange(&call(Collective::Barrier, 0), &Payload::default(), &mut member.around)
        .expect("all are here");
    member.around.shm_deregister(shared.region);
}

impl super::Around {
    fn shm_deregister(&mut self, region: gradwire_transport::Region) {
        gradwire_transport::Transport::deregister(&mut self.shm, region);
    }
}

#[test]
fn all_reduce_gives_everyone_the_sum() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            for count in counts(size) {
                all_reduce::<f32>(member, count, &Sum);
                all_reduce::<i8>(member, count, &Sum);
            }
            for count in [3, 4097, 70_001] {
                all_reduce::<f64>(member, count, &Sum);
                all_reduce::<u64>(member, count, &Sum);
            }
        });
    }
}

#[test]
fn operations_of_users_see_the_contributions_in_rank_order() {
    // Not commutative: the digits of a number in base 3, by rank.
    fn digits(left: f64, right: f64) -> f64 {
        left * 3.0 + right
    }
    for size in [2, 3, 5] {
        in_both_ways(size, |member| {
            let laws = Laws::none();
            let operation = Operation::new("digits", laws, |left: &mut [f64], right: &[f64]| {
                left.iter_mut().zip(right).for_each(|(left, right)| *left = digits(*left, *right));
            });
            let reducer = Reducer::new::<f64, _>(&operation);
            for count in [1, 6, 7, 500, 9000] {
                let of = |rank: usize, index: usize| ((rank + index) % 3) as f64;
                let expected: Vec<f64> = (0..count)
                    .map(|index| (1..size).fold(of(0, index), |left, rank| digits(left, of(rank, index))))
                    .collect();
                let len = count * size_of::<f64>();
                let shared = Shared::new(member, len);
                let own: Vec<f64> = (0..count).map(|index| of(member.rank, index)).collect();
                shared.write(0, &own);
                let mut values = own;
                for memory in [private(span(&mut values)), shared.memory(0..len)] {
                    let signature = call(Collective::AllReduce, count);
                    let result = member.group.all_reduce(
                        &signature,
                        memory,
                        memory.span,
                        fold::<f64>(&reducer),
                        &mut member.around,
                    );
                    assert_eq!(result, Ok(()));
                }
                assert!(values == expected, "{count} private");
                assert!(shared.read::<f64>(0, count) == expected, "{count} shared");
                member
                    .group
                    .exchange(&call(Collective::Barrier, 0), &Payload::default(), &mut member.around)
                    .expect("all are here");
            }
        });
    }
}

#[test]
fn broadcast_gives_everyone_the_values_of_the_root() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            for (step, count) in counts(size).into_iter().enumerate() {
                let root = step % size;
                let expected = contribution::<f32>(root, count);
                let mut values = contribution::<f32>(member.rank, count);
                let memory = private(span(&mut values));
                let signature = call(Collective::Broadcast, count);
                let result = member.group.broadcast(&signature, memory, root, &mut member.around);
                assert_eq!(result, Ok(()));
                assert!(values == expected, "{count} private");
                // It is enough that the root's memory is shared.
                let shared = Shared::new(member, count * 4);
                shared.write(0, &contribution::<f32>(member.rank, count));
                let mut memory = shared.memory(0..count * 4);
                if member.rank != root && count % 2 == 0 {
                    memory.share = None;
                }
                let result = member.group.broadcast(&signature, memory, root, &mut member.around);
                assert_eq!(result, Ok(()));
                assert!(shared.read::<f32>(0, count) == expected, "{count} shared");
            }
            member
                .group
                .exchange(&call(Collective::Barrier, 0), &Payload::default(), &mut member.around)
                .expect("all are here");
        });
    }
}

#[test]
fn gathering_keeps_rank_order() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            for (step, count) in counts(size).into_iter().enumerate() {
                let root = step % size;
                let expected: Vec<u64> =
                    (0..size).flat_map(|rank| contribution::<u64>(rank, count)).collect();
                let shared = Shared::new(member, count * 8);
                let block = |rank: usize| count * 8 * rank..count * 8 * (rank + 1);
                let places = Places { block: &block, longest: count * 8 };
                for is_shared in [false, true] {
                    let mut source = contribution::<u64>(member.rank, count);
                    shared.write(0, &source);
                    let memory =
                        if is_shared { shared.memory(0..count * 8) } else { private(span(&mut source)) };
                    let mut all = vec![99_u64; count * size];
                    let signature = call(Collective::AllGather, count);
                    let into = span(&mut all);
                    let result =
                        member.group.all_gather(&signature, memory, into, &places, &mut member.around);
                    assert_eq!(result, Ok(()));
                    assert!(all == expected, "{count} gathered by all, shared: {is_shared}");

                    let mut at_root = vec![99_u64; count * size];
                    let into = (member.rank == root).then(|| span(&mut at_root));
                    let signature = call(Collective::Gather, count);
                    let result =
                        member.group.gather(&signature, memory, into, &places, root, &mut member.around);
                    assert_eq!(result, Ok(()));
                    let expected = if member.rank == root { &expected } else { &vec![99; count * size] };
                    assert!(at_root == *expected, "{count} gathered by {root}, shared: {is_shared}");
                }
                // In its own place.
                let mut all = vec![99_u64; count * size];
                all[count * member.rank..][..count].copy_from_slice(&contribution::<u64>(member.rank, count));
                let into = span(&mut all);
                let own = into.part(count * 8 * member.rank..count * 8 * (member.rank + 1)).expect("inside");
                let signature = call(Collective::AllGather, count);
                let result =
                    member.group.all_gather(&signature, private(own), into, &places, &mut member.around);
                assert_eq!(result, Ok(()));
                assert!(all == expected, "{count} gathered in place");
            }
            member
                .group
                .exchange(&call(Collective::Barrier, 0), &Payload::default(), &mut member.around)
                .expect("all are here");
        });
    }
}

#[test]
fn reducing_to_the_root_and_to_parts() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            let reducer = Reducer::new::<f32, _>(&Sum);
            for (step, count) in counts(size).into_iter().enumerate() {
                let root = step % size;
                let shared = Shared::new(member, count * size * 4);
                for is_shared in [false, true] {
                    let mut source = contribution::<f32>(member.rank, count);
                    shared.write(0, &source);
                    let memory =
                        if is_shared { shared.memory(0..count * 4) } else { private(span(&mut source)) };
                    let into = (member.rank == root).then_some(memory.span);
                    let signature = call(Collective::Reduce, count);
                    let result = member.group.reduce(
                        &signature,
                        memory,
                        into,
                        root,
                        fold::<f32>(&reducer),
                        &mut member.around,
                    );
                    assert_eq!(result, Ok(()));
                    let result = if is_shared { shared.read::<f32>(0, count) } else { source };
                    let unchanged = contribution::<f32>(member.rank, count);
                    let expected = if member.rank == root { sum::<f32>(size, count) } else { unchanged };
                    assert!(result == expected, "{count} reduced to {root}, shared: {is_shared}");

                    let mut source = contribution::<f32>(member.rank, count * size);
                    shared.write(0, &source);
                    let memory = if is_shared {
                        shared.memory(0..count * size * 4)
                    } else {
                        private(span(&mut source))
                    };
                    let mut part = vec![99.0_f32; count];
                    let signature = call(Collective::ReduceScatter, count);
                    let into = span(&mut part);
                    let block = |rank: usize| count * 4 * rank..count * 4 * (rank + 1);
                    let result = member.group.reduce_scatter(
                        &signature,
                        memory,
                        into,
                        &Places { block: &block, longest: count * 4 },
                        fold::<f32>(&reducer),
                        &mut member.around,
                    );
                    assert_eq!(result, Ok(()));
                    let expected = &sum::<f32>(size, count * size)[count * member.rank..][..count];
                    assert!(part == expected, "{count} scattered, shared: {is_shared}");
                }
            }
            member
                .group
                .exchange(&call(Collective::Barrier, 0), &Payload::default(), &mut member.around)
                .expect("all are here");
        });
    }
}

#[test]
fn calls_of_all_kinds_follow_each_other() {
    ranks(3, |member| {
        let sums = Reducer::new::<f64, _>(&Sum);
        let maxima = Reducer::new::<f64, _>(&Max);
        for step in 0..3000_usize {
            let count = [1, 700, 4000, 30_000][(step * 7 + step / 5) % 4];
            let count = if count > 5000 && step % 50 != 0 { 3 } else { count };
            let of = |rank: usize| vec![(rank * 10 + step) as f64; count];
            let mut values = of(member.rank);
            let memory = private(span(&mut values));
            let (size, around) = (member.size, &mut member.around);
            let (result, expected) = match step % 5 {
                0 => {
                    let signature = call(Collective::Barrier, 0);
                    (member.group.exchange(&signature, &Payload::default(), around), of(member.rank))
                }
                1 => {
                    let root = step % size;
                    let signature = call(Collective::Broadcast, count);
                    (member.group.broadcast(&signature, memory, root, around), of(root))
                }
                2 => {
                    let signature = call(Collective::AllReduce, count);
                    let result = member.group.all_reduce(
                        &signature,
                        memory,
                        memory.span,
                        fold::<f64>(&maxima),
                        around,
                    );
                    (result, of(size - 1))
                }
                3 => {
                    let root = step % size;
                    let signature = call(Collective::Reduce, count);
                    let into = (member.rank == root).then_some(memory.span);
                    let result =
                        member.group.reduce(&signature, memory, into, root, fold::<f64>(&sums), around);
                    let sum = (0..size).map(|rank| (rank * 10 + step) as f64).sum();
                    (result, if member.rank == root { vec![sum; count] } else { of(member.rank) })
                }
                _ => {
                    let signature = call(Collective::AllReduce, count);
                    let result =
                        member.group.all_reduce(&signature, memory, memory.span, fold::<f64>(&sums), around);
                    let sum = (0..size).map(|rank| (rank * 10 + step) as f64).sum();
                    (result, vec![sum; count])
                }
            };
            assert_eq!(result, Ok(()));
            assert!(values == expected, "step {step}");
        }
    });
}
