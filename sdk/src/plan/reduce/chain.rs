//! Along a chain, segment by segment.

use crate::Rank;
use crate::pattern::ring::{backward, forward};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// The rank behind the root sends its vector to its successor, which adds its own and passes the sum on while more is
/// arriving, around to the root. Each port carries the vector once, which is the least possible; only the first segment
/// pays for the length of the chain. For long vectors. Partial results overwrite the vectors on the way.
///
/// Restrictions: commutative operations with exact partials.
/// Association: [`Rotated`](Association::Rotated), with the root as the owner of everything.
/// Cost: `(p-1)α + nβ + nγ + (p-2)sβ`, with segments of `s` bytes.
/// Source: the pipeline of Pješivac-Grbović et al., "Performance analysis of MPI collective operations", 2007.
#[derive(Debug)]
pub(super) struct Chain;

impl Algorithm for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.association().excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        Cost { reduced_bytes: shape.bytes() as f64, ..Cost::chain(shape) }
    }

    fn association(&self) -> Association {
        Association::Rotated
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        usize::from(!starts(shape, rank)) + usize::from(rank != shape.root)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        if index == 0 && !starts(shape, rank) {
            Step::fold(backward(shape.ranks, rank, 1), rank == shape.root, shape.whole())
        } else {
            Step::send(forward(shape.ranks, rank, 1), shape.whole()).after_any(index.checked_sub(1))
        }
    }
}

/// Whether the chain starts here.
const fn starts(shape: &Shape, rank: Rank) -> bool {
    rank == forward(shape.ranks, shape.root, 1)
}
