//! The largest hypercube among the ranks, and the ranks left over.
//!
//! Of `p = 2^d + e` ranks the first `2e` form pairs of neighbours. The even one of a pair stands for both; the odd one
//! is folded into it. Places in the cube are in rank order, and each stands for a contiguous group of ranks:
//!
//! ```text
//! p = 6:   rank    0 <- 1    2 <- 3    4    5
//!          place     0         1       2    3
//! ```

use crate::Rank;

/// The largest hypercube among a number of ranks, at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hypercube {
    ranks: usize,
}

/// What a rank is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// At a place in the cube, perhaps with a rank folded into it.
    Core { place: usize, folded: Option<Rank> },
    /// Folded into a rank of the cube.
    Folded { into: Rank },
}

impl Hypercube {
    pub(crate) const fn new(ranks: usize) -> Self {
        Self { ranks }
    }

    /// `d`: the places of the cube have so many bits.
    pub(crate) const fn dimensions(self) -> usize {
        match self.ranks.checked_ilog2() {
            Some(dimensions) => dimensions as usize,
            None => 0,
        }
    }

    /// `e`: how many ranks are folded into others.
    pub(crate) const fn extra(self) -> usize {
        self.ranks - (1 << self.dimensions())
    }

    pub(crate) const fn role(self, rank: Rank) -> Role {
        if rank >= 2 * self.extra() {
            Role::Core { place: rank - self.extra(), folded: None }
        } else if rank.is_multiple_of(2) {
            Role::Core { place: rank / 2, folded: Some(rank + 1) }
        } else {
            Role::Folded { into: rank - 1 }
        }
    }

    /// The rank at a place.
    pub(crate) const fn rank(self, place: usize) -> Rank {
        if place < self.extra() { 2 * place } else { place + self.extra() }
    }

    /// The rank across one dimension from a place.
    pub(crate) const fn partner(self, place: usize, dimension: usize) -> Rank {
        self.rank(place ^ (1 << dimension))
    }
}

#[cfg(test)]
mod tests {
    use super::{Hypercube, Role};

    #[test]
    fn the_picture() {
        let roles: Vec<_> = (0..6).map(|rank| Hypercube::new(6).role(rank)).collect();
        assert_eq!(
            roles,
            [
                Role::Core { place: 0, folded: Some(1) },
                Role::Folded { into: 0 },
                Role::Core { place: 1, folded: Some(3) },
                Role::Folded { into: 2 },
                Role::Core { place: 2, folded: None },
                Role::Core { place: 3, folded: None },
            ]
        );
    }

    #[test]
    fn places_and_ranks_agree() {
        for ranks in 1..=33 {
            let cube = Hypercube::new(ranks);
            let mut places = 0;
            for rank in 0..ranks {
                match cube.role(rank) {
                    Role::Core { place, folded } => {
                        assert_eq!(place, places, "in rank order");
                        places += 1;
                        assert_eq!(cube.rank(place), rank);
                        if let Some(folded) = folded {
                            assert_eq!(cube.role(folded), Role::Folded { into: rank });
                        }
                    }
                    Role::Folded { into } => {
                        assert!(
                            matches!(cube.role(into), Role::Core { folded: Some(folded), .. } if folded == rank)
                        );
                    }
                }
            }
            assert_eq!(places, 1 << cube.dimensions());
            assert_eq!(places + cube.extra(), ranks);
        }
    }
}
