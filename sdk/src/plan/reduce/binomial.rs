//! Up a binomial tree.

use crate::Rank;
use crate::pattern::binomial::{child, children, parent};
use crate::pattern::dissemination;
use crate::plan::{Algorithm, Association, Cost, Shape, Step};

/// Every rank folds the vectors of its children, the smallest subtree first, and passes the result to its parent
/// (picture in [`pattern::binomial`](crate::pattern::binomial)). Fewest rounds with a logarithmic load on the root: for
/// short vectors. Partial results overwrite the vectors of inner ranks.
///
/// Restrictions: exact partials; commutative operations unless the root is rank 0.
/// Association: [`Binomial`](Association::Binomial).
/// Cost: `⌈log2 p⌉(α + nβ + nγ)`.
/// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
#[derive(Debug)]
pub(super) struct Binomial;

impl Algorithm for Binomial {
    fn name(&self) -> &'static str {
        "binomial"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        self.association().excluded(shape)
    }

    fn cost(&self, shape: &Shape) -> Cost {
        let rounds = f64::from(dissemination::rounds(shape.ranks));
        let bytes = rounds * shape.bytes() as f64;
        Cost { rounds, messages: rounds, bytes, reduced_bytes: bytes, ..Cost::default() }
    }

    fn association(&self) -> Association {
        Association::Binomial
    }

    fn len(&self, shape: &Shape, rank: Rank) -> usize {
        children(shape.ranks, shape.root, rank) + usize::from(rank != shape.root)
    }

    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step {
        let (ranks, root) = (shape.ranks, shape.root);
        let children = children(ranks, root, rank);
        let step = match parent(ranks, root, rank) {
            Some(parent) if index == children => Step::send(parent, shape.whole()),
            parent => {
                let last = parent.is_none() && index + 1 == children;
                Step::fold(child(ranks, rank, index), last, shape.whole())
            }
        };
        step.after_any(index.checked_sub(1))
    }
}
