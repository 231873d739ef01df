//! Ranks in a circle.

use crate::Rank;

/// The rank `distance` places after `rank`; `distance` up to `ranks`.
pub(crate) const fn forward(ranks: usize, rank: Rank, distance: usize) -> Rank {
    let to = rank + distance;
    if to < ranks { to } else { to - ranks }
}

/// The rank `distance` places before `rank`; `distance` up to `ranks`.
pub(crate) const fn backward(ranks: usize, rank: Rank, distance: usize) -> Rank {
    if rank >= distance { rank - distance } else { rank + ranks - distance }
}
