//! Whole vectors across the edges of a hypercube.

use crate::Rank;
use crate::pattern::hypercube::{Hypercube, Role};
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// In round `k` a rank exchanges its whole vector with the one whose place differs in bit `k`, and both fold the same
/// two operands. Fewest rounds, most bytes: for short vectors.
///
/// ```text
/// p = 4:   0 <-> 1    2 <-> 3    then    0 <-> 2    1 <-> 3
/// ```
///
/// Ranks beyond the largest power of two give their vector to a neighbour first and get the result last.
///
/// Restrictions: exact partials. Not commutative is fine: every place stands for contiguous ranks.
/// Association: [`Butterfly`](Association::Butterfly).
/// Cost: `d(α + nβ + nγ)` for `p = 2^d`; `2α + 2nβ + nγ` more for others.
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
#[derive(Debug)]
pub(super) struct RecursiveDoubling;

impl Algorithm for RecursiveDoubling {
    fn name(&self) -> &'static str {
        "recursive_doubling"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.association().excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let cube = Hypercube::new(shape.ranks);
        let (rounds, bytes) = (cube.dimensions() as f64, shape.bytes() as f64);
        Cost {
            rounds,
            messages: rounds,
            bytes: rounds * bytes,
            reduced_bytes: rounds * bytes,
            ..Cost::default()
        }
        .folding(cube, bytes)
    }

    fn association(&self) -> Association {
        Association::Butterfly
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        let cube = Hypercube::new(shape.ranks);
        match cube.role(rank) {
            Role::Folded { .. } => 2,
            Role::Core { folded, .. } => 2 * cube.dimensions() + 2 * usize::from(folded.is_some()),
        }
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let cube = Hypercube::new(shape.ranks);
        match (cube.role(rank), index) {
            (Role::Folded { into }, 0) => Step::send(into, shape.whole()),
            (Role::Folded { into }, _) => Step::receive(into, shape.whole()).after(0),
            (Role::Core { folded: Some(folded), .. }, 0) => Step::fold(folded, false, shape.whole()),
            (Role::Core { place, folded }, _) => {
                let exchange = index - usize::from(folded.is_some());
                let dimension = exchange / 2;
                match folded {
                    Some(folded) if dimension == cube.dimensions() => {
                        Step::send(folded, shape.whole()).after(index - 1)
                    }
                    _ => exchange_vectors(shape, cube, place, exchange)
                        .channel(dimension)
                        .after_any(index.checked_sub(1)),
                }
            }
        }
    }
}

/// The send or the fold of an exchange. Each waits for the step before it.
fn exchange_vectors(shape: &Shape, cube: Hypercube, place: usize, exchange: usize) -> Step {
    let dimension = exchange / 2;
    let partner = cube.partner(place, dimension);
    if exchange.is_multiple_of(2) {
        Step::send(partner, shape.whole())
    } else {
        Step::fold(partner, dimension + 1 == cube.dimensions(), shape.whole())
    }
}
