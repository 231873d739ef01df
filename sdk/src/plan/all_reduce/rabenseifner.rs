//! Halves, quarters, eighths across the edges of a hypercube, and back.

use crate::Rank;
use crate::pattern::hypercube::{Hypercube, Role};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};
use std::ops::Range;

/// In round `k` a rank keeps one half of what it holds, chosen by bit `k` of its place, and exchanges the other half
/// with the rank across that dimension, until everybody has one part of the sum; then the rounds run backwards to hand
/// the parts to everybody. As few bytes as the ring in a logarithmic number of rounds. Near ranks are combined first,
/// so that the bits are those of recursive doubling.
///
/// ```text
/// p = 4 keeps    round 0   round 1      (place 1 ends with part 2: its bits reversed)
/// place 0        0 1 . .   0 . . .
/// place 1        . . 2 3   . . 2 .
/// place 2        0 1 . .   . 1 . .
/// place 3        . . 2 3   . . . 3
/// ```
///
/// Ranks beyond the largest power of two give their vector to a neighbour first and get the result last.
///
/// Restrictions: exact partials. Not commutative is fine: every place stands for contiguous ranks.
/// Association: [`Butterfly`](Association::Butterfly).
/// Cost: `2dα + 2(p-1)/p nβ + (p-1)/p nγ` for `p = 2^d`; `2α + 2nβ + nγ` more for others.
/// Source: Rabenseifner, "Optimization of collective reduction operations", 2004; with the near ranks first.
#[derive(Debug)]
pub(super) struct Rabenseifner;

impl Algorithm for Rabenseifner {
    fn name(&self) -> &'static str {
        "rabenseifner"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.association().excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let cube = Hypercube::new(shape.ranks);
        let (rounds, bytes) = (2.0 * cube.dimensions() as f64, shape.bytes() as f64);
        let foreign = bytes - bytes / f64::from(1 << cube.dimensions());
        Cost { rounds, messages: rounds, bytes: 2.0 * foreign, reduced_bytes: foreign, ..Cost::default() }
            .folding(cube, bytes)
    }

    fn association(&self) -> Association {
        Association::Butterfly
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        let cube = Hypercube::new(shape.ranks);
        match cube.role(rank) {
            Role::Folded { .. } => 2,
            Role::Core { folded, .. } => 4 * cube.dimensions() + 2 * usize::from(folded.is_some()),
        }
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let cube = Hypercube::new(shape.ranks);
        let dimensions = cube.dimensions();
        match (cube.role(rank), index) {
            (Role::Folded { into }, 0) => Step::send(into, shape.whole()),
            (Role::Folded { into }, _) => Step::receive(into, shape.whole()).after(0),
            (Role::Core { folded: Some(folded), .. }, 0) => Step::fold(folded, false, shape.whole()),
            (Role::Core { place, folded }, _) => {
                let first = usize::from(folded.is_some());
                let exchange = index - first;
                match folded {
                    _ if exchange < 2 * dimensions => halve(shape, cube, place, first, exchange),
                    Some(folded) if exchange == 4 * dimensions => {
                        Step::send(folded, shape.whole()).after(index - 1).after(index - 2)
                    }
                    _ => double(shape, cube, place, first, exchange - 2 * dimensions),
                }
            }
        }
    }
}

/// The reducing half: sends one half of what is held and folds the other, once the fold before is done.
fn halve(shape: &Shape, cube: Hypercube, place: usize, first: usize, exchange: usize) -> Step {
    let dimension = exchange / 2;
    let partner = cube.partner(place, dimension);
    let step = if exchange.is_multiple_of(2) {
        Step::send(partner, held(shape, cube, place ^ (1 << dimension), dimension + 1))
    } else {
        let last = dimension + 1 == cube.dimensions();
        Step::fold(partner, last, held(shape, cube, place, dimension + 1))
    };
    step.channel(dimension).after_any((first + 2 * dimension).checked_sub(1))
}

/// The gathering half: sends all that is complete and receives as much.
fn double(shape: &Shape, cube: Hypercube, place: usize, first: usize, exchange: usize) -> Step {
    let dimensions = cube.dimensions();
    let dimension = dimensions - 1 - exchange / 2;
    let partner = cube.partner(place, dimension);
    let index = first + 2 * dimensions + exchange;
    let step = if !exchange.is_multiple_of(2) {
        // What is overwritten was sent away in the reducing half.
        Step::receive(partner, held(shape, cube, place ^ (1 << dimension), dimension + 1))
            .after(first + 2 * dimension)
    } else if exchange == 0 {
        Step::send(partner, held(shape, cube, place, dimension + 1)).after(index - 1)
    } else {
        // What was received in the round before, and what was complete before that.
        Step::send(partner, held(shape, cube, place, dimension + 1)).after(index - 1).after(index - 2)
    };
    step.channel(dimensions + dimension)
}

/// What a place still holds after so many rounds of halving.
fn held(shape: &Shape, cube: Hypercube, place: usize, rounds: usize) -> Range<usize> {
    let parts = 1_usize << cube.dimensions();
    let first: usize = (0..rounds).map(|round| ((place >> round) & 1) * (parts >> (round + 1))).sum();
    let last = first + (parts >> rounds) - 1;
    shape.part(parts, first).start..shape.part(parts, last).end
}
