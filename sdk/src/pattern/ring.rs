//! Ranks in a circle.

use crate::Rank;

/// The rank `distance` places after `rank`; `distance` up to `ranks`.
pub(crate) const fn forward(ranks: usize, rank: Rank, distance: usize) -> Rank {
    let left = ranks - rank;
    if distance < left { rank + distance } else { distance - left }
}

/// The rank `distance` places before `rank`; `distance` up to `ranks`.
pub(crate) const fn backward(ranks: usize, rank: Rank, distance: usize) -> Rank {
    if rank >= distance { rank - distance } else { ranks - (distance - rank) }
}

#[cfg(test)]
mod tests {
    use super::{backward, forward};

    #[test]
    fn there_and_back() {
        for ranks in 1..=9 {
            for rank in 0..ranks {
                for distance in 0..=ranks {
                    assert_eq!(forward(ranks, rank, distance), (rank + distance) % ranks);
                    assert_eq!(backward(ranks, forward(ranks, rank, distance), distance), rank);
                }
            }
        }
    }
}
