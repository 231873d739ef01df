//! Blocks of any lengths, and prefixes, for private and for shared memory.

use super::collectives::{contribution, fold, value};
use super::{Member, Shared, call, in_both_ways, private, span};
use crate::Rank;
use crate::buffer::Reducer;
use crate::direct::board::Payload;
use crate::direct::{Memory, Pairs, Places};
use gradwire_schema::Collective;
use gradwire_schema::operation::Sum;
use std::ops::Range;

/// Elements of each rank: some inside a line, some in one round, some in several; one rank has none.
fn lengths(size: usize) -> [Vec<usize>; 4] {
    [1, 5, 900, 30_011].map(|count| (0..size).map(|rank| if rank == 1 { 0 } else { count + rank }).collect())
}

/// In bytes, where the block of a rank lies.
fn places(lengths: &[usize]) -> impl Fn(Rank) -> Range<usize> {
    let ends: Vec<usize> =
        (0..=lengths.len()).map(|rank| 4 * lengths[..rank].iter().sum::<usize>()).collect();
    move |rank| ends[rank]..ends[rank + 1]
}

/// Once with private memory, once with shared memory that holds the same: what is there afterwards.
fn with_both(
    member: &mut Member,
    before: &[f32],
    mut run: impl FnMut(&mut Member, Memory),
    mut check: impl FnMut(&[f32], bool),
) {
    let mut values = before.to_vec();
    let memory = private(span(&mut values));
    run(member, memory);
    check(&values, false);
    let len = 4 * before.len();
    let shared = Shared::new(member, len);
    shared.write(0, before);
    run(member, shared.memory(0..len));
    check(&shared.read::<f32>(0, before.len()), true);
    let barrier = call(Collective::Barrier, 0);
    let met = member.group.exchange(&barrier, &Payload::default(), &mut member.around);
    met.expect("all are here");
}

#[test]
fn blocks_of_any_lengths_are_gathered_and_reduced() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            for lengths in lengths(size) {
                let (rank, total) = (member.rank, lengths.iter().sum());
                let block = places(&lengths);
                let longest = 4 * lengths.iter().max().expect("ranks");
                let places = Places { block: &block, longest };
                let expected: Vec<f32> =
                    (0..size).flat_map(|rank| contribution(rank, lengths[rank])).collect();
                let mut all = vec![99.0_f32; total];
                let into = span(&mut all);
                let run = |member: &mut Member, memory| {
                    let signature = call(Collective::AllGather, total);
                    let result =
                        member.group.all_gather(&signature, memory, into, &places, &mut member.around);
                    assert_eq!(result, Ok(()));
                    let signature = call(Collective::Gather, total);
                    let result =
                        member.group.gather(&signature, memory, Some(into), &places, 0, &mut member.around);
                    assert_eq!(result, Ok(()));
                };
                with_both(member, &contribution(rank, lengths[rank]), run, |_, _| {});
                assert!(all == expected, "{lengths:?}");

                let reducer = Reducer::new::<f32, _>(&Sum);
                let mut part = vec![99.0_f32; lengths[rank]];
                let into = span(&mut part);
                let run = |member: &mut Member, memory| {
                    let (signature, fold) = (call(Collective::ReduceScatter, total), fold::<f32>(&reducer));
                    let around = &mut member.around;
                    let result = member.group.reduce_scatter(&signature, memory, into, &places, fold, around);
                    assert_eq!(result, Ok(()));
                };
                with_both(member, &contribution(rank, total), run, |_, _| {});
                let sum = |index: usize| (0..size).map(|rank| value(rank, index) as f32).sum::<f32>();
                let start = block(rank).start / 4;
                assert!(part.into_iter().eq((start..start + lengths[rank]).map(sum)), "{lengths:?}");
            }
        });
    }
}

#[test]
fn a_root_gives_each_rank_its_block() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            for (root, lengths) in lengths(size).into_iter().enumerate() {
                let (rank, total, root) = (member.rank, lengths.iter().sum(), root % size);
                let own = places(&lengths)(rank);
                let elements = own.start / 4..own.end / 4;
                let run = |member: &mut Member, memory| {
                    let signature = call(Collective::Scatter, total);
                    let own = own.clone();
                    let result = member.group.scatter(&signature, memory, own, root, &mut member.around);
                    assert_eq!(result, Ok(()));
                };
                let mut expected = contribution::<f32>(rank, total);
                expected[elements.clone()].copy_from_slice(&contribution(root, total)[elements]);
                with_both(member, &contribution(rank, total), run, |values, is_shared| {
                    assert!(values == expected, "{lengths:?} shared: {is_shared}");
                });
            }
        });
    }
}

#[test]
fn every_rank_gives_every_rank_a_block() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            for longest in [0, 1, 2, 700, 20_000] {
                let rank = member.rank;
                // Rank 1 has nothing for rank 0; otherwise more for higher ranks.
                let count = |from: Rank, to: Rank| {
                    if (from, to) == (1, 0) { 0 } else { longest - longest / (2 + to) }
                };
                let block = |of: &dyn Fn(Rank) -> usize, index: Rank| {
                    let start: usize = (0..index).map(of).sum();
                    4 * start..4 * (start + of(index))
                };
                let sent = |from: Rank, to: Rank| block(&|to| count(from, to), to);
                let received = |from: Rank| block(&|from| count(from, rank), from);
                let expected: Vec<f32> = (0..size)
                    .flat_map(|from| {
                        contribution(from, sent(from, rank).end / 4).split_off(sent(from, rank).start / 4)
                    })
                    .collect();
                let mut destination = vec![99.0_f32; expected.len()];
                let into = span(&mut destination);
                let run = |member: &mut Member, memory| {
                    let signature = call(Collective::AllToAll, longest);
                    let pairs = Pairs { sent: &sent, received: &received, longest: 4 * longest };
                    let result =
                        member.group.all_to_all(&signature, memory, into, &pairs, &mut member.around);
                    assert_eq!(result, Ok(()));
                };
                let own = contribution::<f32>(rank, sent(rank, size - 1).end / 4);
                with_both(member, &own, run, |values, _| assert!(values == own));
                assert!(destination == expected, "{longest}");
            }
        });
    }
}

#[test]
fn every_rank_gets_the_sum_up_to_a_rank() {
    for size in 1..=5 {
        in_both_ways(size, |member| {
            let reducer = Reducer::new::<f32, _>(&Sum);
            for count in [0, 1, 12, 13, 4000, 50_001] {
                for below in [member.rank, member.rank + 1] {
                    let run = |member: &mut Member, memory: Memory| {
                        let (signature, fold) = (call(Collective::Scan, count), fold::<f32>(&reducer));
                        let around = &mut member.around;
                        let result = member.group.scan(&signature, memory.span, below, fold, around);
                        assert_eq!(result, Ok(()));
                    };
                    let own = contribution::<f32>(member.rank, count);
                    let sum = |index: usize| (0..below).map(|rank| value(rank, index) as f32).sum::<f32>();
                    let expected = if below == 0 { own.clone() } else { (0..count).map(sum).collect() };
                    with_both(member, &own, run, |values, _| assert!(values == expected, "{count}"));
                }
            }
        });
    }
}
