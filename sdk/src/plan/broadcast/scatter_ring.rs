//! A scatter and an all-gather around a ring.

use crate::Rank;
use crate::pattern::ring::{backward, forward};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// The root sends part `v` to the rank `v` places behind it, and then all pass parts on to their successors until
/// everybody has everything. Nothing is sent back to the root. Every port carries the vector at most twice, with no
/// need for segments: for vectors too long for a tree and too short for a pipeline.
///
/// ```text
/// p = 4, root 0      scatter      ring: from the predecessor, in this order
/// place 1            1            0 3 2
/// place 2            2            1 0 3
/// place 3            3            2 1 0
/// ```
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `pα + 2(p-1)/p nβ`.
/// Source: Barnett et al., "Interprocessor collective communication library (InterCom)", 1994.
#[derive(Debug)]
pub(super) struct ScatterRing;

impl Algorithm for ScatterRing {
    fn name(&self) -> &'static str {
        "scatter_ring"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let (ranks, others) = (shape.ranks as f64, (shape.ranks - 1) as f64);
        let bytes = 2.0 * shape.bytes() as f64 * others / ranks;
        Cost { rounds: ranks, messages: 2.0 * others, bytes, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        let others = shape.ranks - 1;
        match backward(shape.ranks, rank, shape.root) {
            0 => 2 * others,
            place if place == others => 1 + others,
            _ => 1 + 2 * others,
        }
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let (ranks, others) = (shape.ranks, shape.ranks - 1);
        let place = backward(ranks, rank, shape.root);
        let send = |round| {
            let part = shape.block(backward(ranks, place, round));
            Step::send(forward(ranks, rank, 1), part).channel(1 + round)
        };
        let receive = |round| {
            let part = shape.block(backward(ranks, place, round + 1));
            Step::receive(backward(ranks, rank, 1), part).channel(1 + round)
        };
        match (place, index) {
            (0, _) if index < others => {
                let place = index + 1;
                Step::send(forward(ranks, rank, place), shape.block(place))
            }
            (0, _) => send(index - others),
            (_, 0) => Step::receive(shape.root, shape.block(place)),
            (_, _) if place == others => receive(index - 1),
            (_, _) if index.is_multiple_of(2) => receive(index / 2 - 1),
            // What was received just before: in the scatter at first, then in the round before.
            (_, _) => send(index / 2).after(index - 1),
        }
    }
}
