//! Down a binomial tree.

use crate::Rank;
use crate::pattern::binomial::{child, children, parent, subtree};
use crate::pattern::dissemination;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};
use std::ops::Range;

/// Every rank receives the blocks of its subtree and passes those of its children on, the largest subtree first
/// (picture in [`pattern::binomial`](crate::pattern::binomial)). The root sends a logarithmic number of messages: for
/// short blocks on many ranks. The blocks of a subtree around the end of the vector are sent in two pieces.
///
/// Restrictions: none. Inner ranks need memory for their subtree.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `⌈log2 p⌉(α + o) + (p-1)/p nβ`.
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005,
/// section on broadcast, whose first half it is.
#[derive(Debug)]
pub(super) struct Binomial;

impl Algorithm for Binomial {
    fn name(&self) -> &'static str {
        "binomial"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let rounds = f64::from(dissemination::rounds(shape.ranks));
        let bytes = shape.bytes() as f64 * (shape.ranks - 1) as f64 / shape.ranks as f64;
        Cost { rounds, messages: rounds, bytes, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        received(shape, rank) + downwards(shape, rank).count()
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let received = received(shape, rank);
        let downwards = index.checked_sub(received).and_then(|index| downwards(shape, rank).nth(index));
        let Some((child, index)) = downwards else {
            let parent = parent(shape.ranks, shape.root, rank).unwrap_or(shape.root);
            return Step::receive(parent, piece(shape, rank, index)).channel(index);
        };
        // What lies at the beginning of the vector came in the second piece, unless the first begins there.
        let around = index == 1 || child < rank;
        Step::send(child, piece(shape, child, index))
            .channel(index)
            .after_any((received > 0).then_some(usize::from(around)))
    }
}

/// The children and the pieces for each, the largest subtree first.
fn downwards(shape: &Shape, rank: Rank) -> impl Iterator<Item = (Rank, usize)> {
    let (ranks, root) = (shape.ranks, shape.root);
    let children = (0..children(ranks, root, rank)).rev().map(move |index| child(ranks, rank, index));
    children.flat_map(move |child| (0..pieces(shape, child)).map(move |index| (child, index)))
}

/// In how many pieces a rank receives.
fn received(shape: &Shape, rank: Rank) -> usize {
    if rank == shape.root { 0 } else { pieces(shape, rank) }
}

/// In how many pieces the blocks of a subtree lie: two where it goes around the end of the vector.
fn pieces(shape: &Shape, head: Rank) -> usize {
    1 + usize::from(head + subtree(shape.ranks, shape.root, head) > shape.ranks)
}

/// A piece of the blocks of a subtree.
fn piece(shape: &Shape, head: Rank, index: usize) -> Range<usize> {
    let end = head + subtree(shape.ranks, shape.root, head);
    if index == 0 {
        shape.blocks_of(head..end.min(shape.ranks))
    } else {
        shape.blocks_of(0..end - shape.ranks)
    }
}
