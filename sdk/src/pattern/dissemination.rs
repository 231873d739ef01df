//! Everybody learns of everybody in `⌈log2 p⌉` rounds: in round `k` each rank passes on what it knows to the rank
//! `2^k` places ahead, and so knows of `2^(k+1)` ranks.
//!
//! Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.

use super::ring::{backward, forward};
use crate::Rank;

/// How many rounds there are: 0 for one rank.
pub(crate) const fn rounds(ranks: usize) -> u32 {
    usize::BITS - ranks.saturating_sub(1).leading_zeros()
}

/// To whom `rank` sends in a round.
pub(crate) const fn to(ranks: usize, rank: Rank, round: u32) -> Rank {
    forward(ranks, rank, 1 << round)
}

/// From whom `rank` receives in a round.
pub(crate) const fn from(ranks: usize, rank: Rank, round: u32) -> Rank {
    backward(ranks, rank, 1 << round)
}

#[cfg(test)]
mod tests {
    use super::{from, rounds, to};
    use std::collections::BTreeSet;

    #[test]
    fn all_know_of_all_after_the_last_round_and_not_before() {
        for ranks in 1..=33 {
            let mut known: Vec<BTreeSet<usize>> = (0..ranks).map(|rank| [rank].into()).collect();
            for round in 0..rounds(ranks) {
                assert!(known.iter().all(|known| known.len() < ranks), "{ranks} ranks, round {round}");
                let before = known.clone();
                for (rank, known) in known.iter_mut().enumerate() {
                    assert_eq!(to(ranks, from(ranks, rank, round), round), rank);
                    known.extend(&before[from(ranks, rank, round)]);
                }
            }
            assert!(known.iter().all(|known| known.len() == ranks), "{ranks} ranks");
        }
    }
}
