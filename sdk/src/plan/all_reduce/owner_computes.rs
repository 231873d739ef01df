//! Every block is summed by its owner, in one fold.

use crate::Rank;
use crate::pattern::ring::{backward, forward};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank sends block `b` of its vector to rank `b`, which folds all contributions in rank order and sends the
/// result to everybody. Ranks start with their successor, so that not all send to one at first. The accumulator
/// never leaves the owner's registers: the way for sums that are rounded when written as elements.
///
/// ```text
/// steps of rank r (p = 4):  0..3  send block r+1, r+2, r+3 to its owner
///                           3     fold block r of all
///                           4..7  send block r to r+1, r+2, r+3
///                           7..10 receive block r-1, r-2, r-3 from its owner
/// ```
///
/// Restrictions: none. An owner holds a segment of every other rank at a time.
/// Association: [`RankOrder`](Association::RankOrder).
/// Cost: `2α + 2(p-1)(o + n/p β') + (p-1)/p nγ`, with β' for traffic between all pairs at once.
/// Source: the direct exchange of Thakur, Rabenseifner and Gropp, "Optimization of collective communication
/// operations in MPICH", 2005, section on reduce-scatter, followed by its mirror image.
#[derive(Debug)]
pub(super) struct OwnerComputes;

const CONTRIBUTION: usize = 0;
const RESULT: usize = 1;

impl Algorithm for OwnerComputes {
    fn name(&self) -> &'static str {
        "owner_computes"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let others = (shape.ranks - 1) as f64;
        let foreign = shape.bytes() as f64 * others / shape.ranks as f64;
        Cost { rounds: 2.0, messages: 2.0 * others, reduced_bytes: foreign, ..Cost::default() }
            .between_all_pairs(shape, 2.0 * foreign)
    }

    fn association(&self) -> Association {
        Association::RankOrder
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        3 * (shape.ranks - 1) + 1
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let (ranks, others) = (shape.ranks, shape.ranks - 1);
        if index < others {
            let owner = forward(ranks, rank, index + 1);
            Step::send(owner, shape.block(owner)).channel(CONTRIBUTION)
        } else if index == others {
            Step::fold_all(shape.block(rank)).channel(CONTRIBUTION)
        } else if index <= 2 * others {
            let to = forward(ranks, rank, index - others);
            Step::send(to, shape.block(rank)).channel(RESULT).after(others)
        } else {
            let distance = index - 2 * others;
            let owner = backward(ranks, rank, distance);
            // Step `i` sent the block of the owner `i + 1` places ahead, which is `p - i - 1` places behind.
            Step::receive(owner, shape.block(owner)).channel(RESULT).after(others - distance)
        }
    }
}
