//! Every rank sums what it needs, in one fold.

use super::{len, passed, places, step};
use crate::Rank;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank sends its vector to all higher ranks, and folds those of all lower ones in rank order. One round, and
/// the accumulator never leaves the registers: the way for sums that are rounded when written as elements. The last
/// rank's port carries every vector.
///
/// Restrictions: none. The last rank holds a segment of every other rank at a time.
/// Association: [`RankOrder`](Association::RankOrder).
/// Cost: `α + (p-1)(o + nβ + nγ)`; `α + o + nβ` more for an exclusive scan.
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
        let others = places(shape).saturating_sub(1) as f64;
        let bytes = others * shape.bytes() as f64;
        passed(shape, Cost { rounds: 1.0, messages: others, bytes, reduced_bytes: bytes, ..Cost::default() })
    }

    fn association(&self) -> Association {
        Association::RankOrder
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        len(shape, rank, |line| line.places - line.place)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        step(shape, rank, index, |line, index| {
            let to = line.place + 1 + index;
            let step = if to < line.places {
                Step::send(to, shape.whole())
            } else if line.place > 0 {
                Step::fold_lower(0, shape.whole())
            } else {
                Step::finish(shape.whole())
            };
            step.after_any(index.checked_sub(1))
        })
    }
}
