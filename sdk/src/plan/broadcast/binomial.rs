//! Down a binomial tree.

use crate::Rank;
use crate::pattern::binomial::{child, children, parent};
use crate::pattern::dissemination;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank that has the vector passes it to its children, the largest subtree first (picture in
/// [`pattern::binomial`](crate::pattern::binomial)). Fewest rounds, but the root sends the vector once for every
/// child: for short vectors.
///
/// Restrictions: none.
/// Association: [`Nothing`](Association::Nothing) is combined.
/// Cost: `⌈log2 p⌉(α + nβ)`.
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
#[derive(Debug)]
pub(super) struct Binomial;

impl Algorithm for Binomial {
    fn name(&self) -> &'static str {
        "binomial"
    }

    fn excluded(&self, _: &Shape) -> Option<&'static str> {
        None
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let rounds = f64::from(dissemination::rounds(shape.ranks));
        Cost { rounds, messages: rounds, bytes: rounds * shape.bytes() as f64, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Nothing
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        usize::from(rank != shape.root) + children(shape.ranks, shape.root, rank)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let (ranks, root) = (shape.ranks, shape.root);
        match (parent(ranks, root, rank), index) {
            (Some(parent), 0) => Step::receive(parent, shape.whole()),
            (parent, _) => {
                let send = index - usize::from(parent.is_some());
                let largest_first = children(ranks, root, rank) - 1 - send;
                Step::send(child(ranks, rank, largest_first), shape.whole()).after_any(parent.map(|_| 0))
            }
        }
    }
}
