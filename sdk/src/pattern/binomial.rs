//! The binomial tree: places are counted from the root, and the parent of a place is the place without its
//! lowest bit.
//!
//! ```text
//! 0 -+- 4 -+- 6 --- 7
//!    |     +- 5
//!    +- 2 --- 3
//!    +- 1
//! ```

use super::ring::{backward, forward};
use crate::Rank;

/// The parent; `None` at the root.
pub(crate) const fn parent(ranks: usize, root: Rank, rank: Rank) -> Option<Rank> {
    match backward(ranks, rank, root) {
        0 => None,
        place => Some(forward(ranks, root, place & (place - 1))),
    }
}

/// How many children there are: at most `⌈log2 ranks⌉`.
pub(crate) fn children(ranks: usize, root: Rank, rank: Rank) -> usize {
    let place = backward(ranks, rank, root);
    // Places `place + 2^k`, for every k below the lowest bit of `place`, as far as there are ranks.
    let free = if place == 0 { usize::BITS } else { place.trailing_zeros() };
    let space = usize::BITS - (ranks - place - 1).leading_zeros();
    free.min(space) as usize
}

/// Child `index`, below [`children`]: the head of a subtree of up to `2^index` ranks.
pub(crate) const fn child(ranks: usize, rank: Rank, index: usize) -> Rank {
    forward(ranks, rank, 1 << index)
}

/// How many ranks the subtree of a rank has, itself included. They follow one another from `rank` on, around the end.
pub(crate) fn subtree(ranks: usize, root: Rank, rank: Rank) -> usize {
    match backward(ranks, rank, root) {
        0 => ranks,
        place => (1 << place.trailing_zeros()).min(ranks - place),
    }
}

#[cfg(test)]
mod tests {
    use super::{child, children, parent, subtree};

    #[test]
    fn the_picture() {
        let children_of =
            |rank| (0..children(8, 0, rank)).map(|index| child(8, rank, index)).collect::<Vec<_>>();
        assert_eq!(children_of(0), [1, 2, 4]);
        assert_eq!(children_of(4), [5, 6]);
        assert_eq!(children_of(6), [7]);
        assert_eq!(children_of(7), []);
    }

    #[test]
    fn children_and_parents_agree_and_reach_all() {
        for ranks in 1..=33 {
            for root in [0, ranks / 2, ranks - 1] {
                let mut edges = 0;
                for rank in 0..ranks {
                    assert_eq!(parent(ranks, root, rank).is_none(), rank == root);
                    let below = (0..children(ranks, root, rank)).map(|index| child(ranks, rank, index));
                    let below: usize = below.map(|child| subtree(ranks, root, child)).sum();
                    assert_eq!(subtree(ranks, root, rank), 1 + below);
                    for index in 0..children(ranks, root, rank) {
                        edges += 1;
                        let child = child(ranks, rank, index);
                        assert_eq!(
                            parent(ranks, root, child),
                            Some(rank),
                            "{ranks} ranks, root {root}, {child}"
                        );
                    }
                }
                assert_eq!(edges, ranks - 1);
            }
        }
    }
}
