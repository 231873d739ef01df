//! Every block is summed by its owner, in one fold.

use crate::Rank;
use crate::pattern::ring::forward;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank sends block `b` of its vector to rank `b`, which folds all contributions in rank order. Ranks start with
/// their successor, so that not all send to one at first. Nothing but the own block is overwritten.
///
/// Restrictions: none. An owner holds a segment of every other rank at a time.
/// Association: [`RankOrder`](Association::RankOrder).
/// Cost: `α + (p-1)(o + n/p β') + (p-1)/p nγ`, with β' for traffic between all pairs at once.
/// Source: the pairwise exchange of Thakur, Rabenseifner and Gropp, "Optimization of collective communication
/// operations in MPICH", 2005, with one fold at the end instead of one per round.
#[derive(Debug)]
pub(super) struct OwnerComputes;

impl Algorithm for OwnerComputes {
    fn name(&self) -> &'static str {
        "owner_computes"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let others = (shape.ranks - 1) as f64;
        let foreign = shape.longest_block() as f64 * others;
        Cost { rounds: 1.0, messages: others, reduced_bytes: foreign, ..Cost::default() }
            .between_all_pairs(shape, foreign)
    }

    fn association(&self) -> Association {
        Association::RankOrder
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        shape.ranks
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        if index < shape.ranks - 1 {
            let owner = forward(shape.ranks, rank, index + 1);
            Step::send(owner, shape.block(owner))
        } else {
            Step::fold_all(shape.block(rank))
        }
    }
}
