//! Blocks around a ring.

use crate::Rank;
use crate::plan::{Algorithm, Association, Cost, Shape, Step, ring};

/// Every block is passed from neighbour to neighbour until everybody has it (picture in
/// [`ring`](super::super::ring)). All ports are busy all the time and no traffic crosses: for long blocks.
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `(p-1)α + (p-1)/p nβ`.
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
#[derive(Debug)]
pub(super) struct Ring;

impl Algorithm for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let others = (shape.ranks - 1) as f64;
        let bytes = shape.longest_block() as f64 * others;
        Cost { rounds: others, messages: others, bytes, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        ring::len(shape)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        ring::all_gather(shape, rank, index)
    }
}
