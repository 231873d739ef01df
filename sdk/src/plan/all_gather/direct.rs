//! Everybody sends to everybody.

use crate::Rank;
use crate::pattern::ring::{backward, forward};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank sends its block to every other, its successor first, so that not all send to one at first. One
/// round: for short blocks, and for links that do not mind crossing traffic.
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `α + (p-1)(o + n/p β')`, with β' for traffic between all pairs at once.
/// Source: the linear algorithm of every MPI; see Chan et al., "Collective communication: theory, practice, and
/// experience", 2007.
#[derive(Debug)]
pub(super) struct Direct;

impl Algorithm for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let others = (shape.ranks - 1) as f64;
        Cost { rounds: 1.0, messages: others, ..Cost::default() }
            .between_all_pairs(shape, shape.longest_block() as f64 * others)
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        2 * (shape.ranks - 1)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let distance = index / 2 + 1;
        if index.is_multiple_of(2) {
            Step::send(forward(shape.ranks, rank, distance), shape.block(rank))
        } else {
            let from = backward(shape.ranks, rank, distance);
            Step::receive(from, shape.block(from))
        }
    }
}
