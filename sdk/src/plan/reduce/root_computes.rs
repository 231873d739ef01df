//! The root sums everything, in one fold.

use crate::Rank;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank sends its vector to the root, which folds all contributions in rank order. One round, and the
/// accumulator never leaves the root's registers, but the root's port carries every vector. Sources survive.
///
/// Restrictions: none. The root holds a segment of every other rank at a time.
/// Association: [`RankOrder`](Association::RankOrder).
/// Cost: `α + (p-1)(o + nβ + nγ)`.
/// Source: the linear algorithm of every MPI; see Chan et al., "Collective communication: theory, practice, and
/// experience", 2007.
#[derive(Debug)]
pub(super) struct RootComputes;

impl Algorithm for RootComputes {
    fn name(&self) -> &'static str {
        "root_computes"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let others = (shape.ranks - 1) as f64;
        let bytes = others * shape.bytes() as f64;
        Cost { rounds: 1.0, messages: others, bytes, reduced_bytes: bytes, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::RankOrder
    }

    fn len(&self, _: &Shape, _: Rank) -> usize {
        1
    }

    fn step(&self, shape: &Shape, rank: Rank, _: usize) -> Step {
        if rank == shape.root { Step::fold_all(shape.whole()) } else { Step::send(shape.root, shape.whole()) }
    }
}
