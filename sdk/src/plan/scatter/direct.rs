//! The root sends to everybody.

use crate::Rank;
use crate::pattern::ring::forward;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// The root sends every rank its block, straight to its place. The root's port carries every block once, which a
/// tree would not save; other ranks need no memory but their block.
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `α + (p-1)(o + n/p β)`.
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
        let bytes = shape.bytes() as f64 * others / shape.ranks as f64;
        Cost { rounds: 1.0, messages: others, bytes, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        if rank == shape.root { shape.ranks - 1 } else { 1 }
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        if rank == shape.root {
            let to = forward(shape.ranks, rank, index + 1);
            Step::send(to, shape.block(to))
        } else {
            Step::receive(shape.root, shape.block(rank))
        }
    }
}
