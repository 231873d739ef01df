//! Twice as many contributions in every round.

use super::{len, passed, places, step};
use crate::Rank;
use crate::pattern::dissemination;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// In round `k` a rank sends what it has to the rank `2^k` places ahead and folds what comes from the one as far behind:
/// then it has the sum of the last `2^(k+1)` ranks up to itself. Fewest rounds: for short vectors on many ranks.
///
/// ```text
/// p = 4      round 0      round 1
/// place 0    0            0
/// place 1    0 1          0 1
/// place 2    1 2          0 (1 2)
/// place 3    2 3          (0 1) (2 3)
/// ```
///
/// Restrictions: exact partials. Not commutative is fine: what comes is of lower ranks.
/// Association: [`Doubling`](Association::Doubling).
/// Cost: `⌈log2 p⌉(α + nβ + nγ)`; `α + o + nβ` more for an exclusive scan.
/// Source: Hillis and Steele, "Data parallel algorithms", 1986.
#[derive(Debug)]
pub(super) struct Doubling;

impl Algorithm for Doubling {
    fn name(&self) -> &'static str {
        "doubling"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.association().excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let rounds = f64::from(dissemination::rounds(places(shape)));
        let bytes = rounds * shape.bytes() as f64;
        passed(shape, Cost { rounds, messages: rounds, bytes, reduced_bytes: bytes, ..Cost::default() })
    }

    fn association(&self) -> Association {
        Association::Doubling
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        len(shape, rank, |line| {
            let (sends, folds) = (rounds_below(line.places - line.place), rounds_below(line.place + 1));
            // A fold that comes last finishes.
            sends + folds + usize::from(sends > folds || folds == 0)
        })
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        step(shape, rank, index, |line, index| {
            let (sends, folds) = (rounds_below(line.places - line.place), rounds_below(line.place + 1));
            let both = 2 * sends.min(folds);
            let fold = |round: usize| {
                let last = index + 1 == sends + folds;
                Step::fold(line.place - (1 << round), last, shape.whole()).channel(round)
            };
            let send = |round: usize| Step::send(line.place + (1 << round), shape.whole()).channel(round);
            let step = if index == sends + folds {
                Step::finish(shape.whole())
            } else if index < both {
                if index.is_multiple_of(2) { send(index / 2) } else { fold(index / 2) }
            } else if sends > folds {
                send(index - folds)
            } else {
                fold(index - sends)
            };
            step.after_any(index.checked_sub(1))
        })
    }
}

/// How many rounds have a distance below `bound`, which is at least 1.
const fn rounds_below(bound: usize) -> usize {
    dissemination::rounds(bound) as usize
}
