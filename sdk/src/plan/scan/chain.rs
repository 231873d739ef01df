//! Along a chain, segment by segment.

use super::{len, passed, step};
use crate::Rank;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank adds its vector to what comes from the rank before and passes the sum on while more is arriving. Each port
/// carries the vector once, which is the least possible; only the first segment pays for the length of the chain. For
/// long vectors.
///
/// Restrictions: exact partials. Not commutative is fine.
/// Association: [`RankOrder`](Association::RankOrder).
/// Cost: `(p-1)α + nβ + nγ + (p-2)sβ`, with segments of `s` bytes; `α + o + nβ` more for an exclusive scan.
/// Source: the pipeline of Pješivac-Grbović et al., "Performance analysis of MPI collective operations", 2007.
#[derive(Debug)]
pub(super) struct Chain;

impl Algorithm for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        (!shape.exact_partials && shape.ranks > 2).then_some("all contributions must meet in one fold")
    }

    fn cost(&self, shape: &Shape) -> Cost {
        passed(shape, Cost { reduced_bytes: shape.bytes() as f64, ..Cost::chain(shape) })
    }

    fn association(&self) -> Association {
        Association::RankOrder
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        len(shape, rank, |line| {
            let (is_first, is_last) = (line.place == 0, line.place + 1 == line.places);
            usize::from(!is_first) + 2 * usize::from(!is_last) + usize::from(is_first && is_last)
        })
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        step(shape, rank, index, |line, index| {
            let (is_first, is_last) = (line.place == 0, line.place + 1 == line.places);
            let step = match index + usize::from(is_first) {
                0 => Step::fold(line.place - 1, is_last, shape.whole()),
                1 if !is_last => Step::send(line.place + 1, shape.whole()),
                _ => Step::finish(shape.whole()),
            };
            step.after_any(index.checked_sub(1))
        })
    }
}
