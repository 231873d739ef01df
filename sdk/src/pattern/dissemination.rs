//! Everybody learns of everybody in `⌈log2 p⌉` rounds: in round `k` each rank passes on what it knows to a rank `2^k`
//! places away, and so knows of `2^(k+1)` ranks.
//!
//! Source: Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988.

/// How many rounds there are: 0 for one rank.
pub(crate) const fn rounds(ranks: usize) -> u32 {
    usize::BITS - ranks.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn rounds_are_the_logarithm_rounded_up() {
        let expected = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (1025, 11)];
        assert!(expected.iter().all(|(ranks, count)| rounds(*ranks) == *count));
    }
}
