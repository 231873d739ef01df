//! Reduce-scatter and all-gather around a ring.

use crate::Rank;
use crate::plan::{Algorithm, Association, Cost, Shape, Step, ring};

/// Every block travels the ring twice: collecting contributions until its owner has the sum, then handing the sum to
/// everybody (picture in [`ring`](super::super::ring)). Every rank talks to its two neighbours only, sends and
/// receives all the time, and nobody's port carries more than is unavoidable. Segments follow each other
/// closely, so that folding hides behind transfer.
///
/// Restrictions: commutative operations with exact partials.
/// Association: [`Rotated`](Association::Rotated).
/// Cost: `2(p-1)α + 2(p-1)/p nβ + (p-1)/p nγ`.
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
        let foreign = shape.bytes() as f64 * others / shape.ranks as f64;
        Cost {
            rounds: 2.0 * others,
            messages: 2.0 * others,
            bytes: 2.0 * foreign,
            reduced_bytes: foreign,
            ..Cost::default()
        }
    }

    fn association(&self) -> Association {
        Association::Rotated
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        2 * ring::len(shape)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        match index.checked_sub(ring::len(shape)) {
            None => ring::reduce_scatter(shape, rank, index),
            Some(index) => ring::all_gather_after_reduce_scatter(shape, rank, index),
        }
    }
}
