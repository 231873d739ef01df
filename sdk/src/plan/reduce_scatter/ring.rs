//! Blocks collect contributions around a ring.

use crate::Rank;
use crate::plan::{Algorithm, Association, Cost, Shape, Step, ring};

/// Every block starts behind its owner and is passed from neighbour to neighbour, each adding its contribution, until
/// the owner adds the last one (picture in [`ring`](super::super::ring)). All ports are busy all the time and no
/// traffic crosses: for long vectors. Partial results overwrite the blocks of others.
///
/// Restrictions: commutative operations with exact partials.
/// Association: [`Rotated`](Association::Rotated).
/// Cost: `(p-1)α + (p-1)/p nβ + (p-1)/p nγ`.
/// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
#[derive(Debug)]
pub(super) struct Ring;

impl Algorithm for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.association().excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let others = (shape.ranks - 1) as f64;
        let foreign = shape.longest_block() as f64 * others;
        Cost { rounds: others, messages: others, bytes: foreign, reduced_bytes: foreign, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Rotated
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        ring::len(shape)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        ring::reduce_scatter(shape, rank, index)
    }
}
