//! Everybody sends to everybody.

use crate::Rank;
use crate::pattern::ring::{backward, forward};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank sends each other rank its block, straight to its place, its successor first: in the `i`-th step to the
/// rank `i` places ahead and from the one as far behind, so that nobody is sent to by two at first.
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `α + (p-1)(o + n/p β')`, with β' for traffic between all pairs at once.
/// Source: the pairwise exchange of Thakur, Rabenseifner and Gropp, "Optimization of collective communication
/// operations in MPICH", 2005, without a wait between its rounds.
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
        2 * (shape.ranks - 1) + 1
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let distance = index / 2 + 1;
        if distance == shape.ranks {
            return Step::copy(shape.outgoing(rank, rank).start, shape.incoming(rank, rank));
        }
        if index.is_multiple_of(2) {
            let to = forward(shape.ranks, rank, distance);
            Step::send(to, shape.outgoing(rank, to))
        } else {
            let from = backward(shape.ranks, rank, distance);
            Step::receive(from, shape.incoming(rank, from))
        }
    }
}
