//! Along a chain, segment by segment.

use crate::Rank;
use crate::pattern::ring::{backward, forward};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank passes what it receives to its successor while more is arriving. Each port carries the vector
/// once, which is the least possible; only the first segment pays for the length of the chain. For long vectors.
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `(p-1)α + nβ + (p-2)sβ`, with segments of `s` bytes.
/// Source: the pipeline of Pješivac-Grbović et al., "Performance analysis of MPI collective operations", 2007.
#[derive(Debug)]
pub(super) struct Chain;

impl Algorithm for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        Cost::chain(shape)
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        let place = backward(shape.ranks, rank, shape.root);
        usize::from(place > 0) + usize::from(place < shape.ranks - 1)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        if rank != shape.root && index == 0 {
            Step::receive(backward(shape.ranks, rank, 1), shape.whole())
        } else {
            Step::send(forward(shape.ranks, rank, 1), shape.whole()).after_any(index.checked_sub(1))
        }
    }
}
