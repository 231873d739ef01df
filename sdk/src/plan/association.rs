//! In which order contributions are combined.

use super::{Determinism, Shape};

/// In which order the contributions to an element are combined. It decides the bits of a floating-point sum, and
/// whether an operation that is not commutative may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Association {
    /// Nothing is combined.
    Nothing,
    /// `((0 · 1) · 2) · 3 ...`, in one fold: partial results are never written as elements.
    RankOrder,
    /// From the left along the ring, the owner `b` of the element (the root of a reduce) last:
    /// `((b+1 · b+2) · ...) · b`. Depends on where in the vector the element is.
    Rotated,
    /// A binary tree over ranks. Of `p = 2^d + e` ranks the first `2e` are combined in pairs; then neighbours
    /// are combined in `d` rounds: `((0 · 1) · (2 · 3)) · ((4 · 5) · (6 · 7))`.
    Butterfly,
    /// Of a scan: the result of the ranks up to `r` is, in each of `⌈log2 p⌉` rounds `k`, what the rank `2^k` places before
    /// had after the round before, then the own: `((0 · 1) · (2 · 3))` on rank 3, `(0 · (1 · 2))` on rank 2.
    Doubling,
    /// A binary tree over ranks counted from the root: neighbours are combined in rounds, the last one passing
    /// through where their number is odd.
    Binomial,
}

impl Association {
    /// Why this order does not serve the shape. Two contributions meet in one fold of the lower rank's first whatever
    /// the algorithm, so that two ranks are always served.
    pub(super) fn excluded(self, shape: &Shape) -> Option<&'static str> {
        if matches!(self, Self::Nothing | Self::RankOrder) || shape.ranks <= 2 {
            return None;
        }
        let keeps_rank_order = match self {
            Self::Nothing | Self::RankOrder | Self::Butterfly | Self::Doubling => true,
            Self::Binomial => shape.root == 0,
            Self::Rotated => false,
        };
        if !shape.exact_partials {
            Some("all contributions must meet in one fold")
        } else if shape.determinism >= Determinism::Algorithms {
            Some("the promised bits are those of rank order")
        } else if !shape.commutative && !keeps_rank_order {
            Some("the operation is not commutative")
        } else {
            None
        }
    }
}
