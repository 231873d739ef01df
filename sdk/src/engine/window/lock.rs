//! Locks on a rank's part of a window: granted in the order they were asked for.

use crate::Rank;
use crate::engine::transfer::Breach;
use std::collections::VecDeque;

/// Who holds the lock, and who waits. A rank stands here once at most, so there are no more entries than ranks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    holders: Vec<Rank>,
    /// The only holder shares it with nobody.
    exclusive: bool,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    rank: Rank,
    ticket: u64,
    exclusive: bool,
}

impl Locks {
    pub(super) fn ask(&mut self, rank: Rank, ticket: u64, exclusive: bool) -> Result<(), Breach> {
        if self.holders.contains(&rank) || self.waiting.iter().any(|waiting| waiting.rank == rank) {
            return Err(Breach("it asked twice for the lock of a window"));
        }
        self.waiting.push_back(Waiting { rank, ticket, exclusive });
        Ok(())
    }

    /// Whoever holds it or waits for it does so no longer.
    pub(super) fn release(&mut self, rank: Rank) {
        self.holders.retain(|holder| *holder != rank);
        self.waiting.retain(|waiting| waiting.rank != rank);
    }

    pub(super) fn is_exclusive_of(&self, rank: Rank) -> bool {
        self.exclusive && self.holders.contains(&rank)
    }

    /// The next to whom the lock is granted, and the number of its request.
    pub(super) fn grant(&mut self) -> Option<(Rank, u64)> {
        let next = self.waiting.front()?;
        if !self.holders.is_empty() && (self.exclusive || next.exclusive) {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.holders.push(next.rank);
        self.exclusive = next.exclusive;
        Some((next.rank, next.ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(locks: &mut Locks) -> Vec<Rank> {
        std::iter::from_fn(|| locks.grant()).map(|(rank, _)| rank).collect()
    }

    #[test]
    fn those_who_share_hold_it_together_and_nobody_overtakes() {
        let mut locks = Locks::default();
        for (rank, exclusive) in [(0, false), (1, false), (2, true), (3, false), (4, true), (5, true)] {
            locks.ask(rank, 10 + rank as u64, exclusive).unwrap();
        }
        assert_eq!(granted(&mut locks), [0, 1]);
        locks.release(0);
        assert_eq!(granted(&mut locks), []);
        locks.release(1);
        assert_eq!(granted(&mut locks), [2]);
        locks.release(4);
        locks.release(2);
        assert_eq!(granted(&mut locks), [3], "4 has given up");
        locks.release(3);
        assert_eq!(locks.grant(), Some((5, 15)));
        assert_eq!(locks.grant(), None);
    }

    #[test]
    fn nobody_stands_in_line_twice() {
        let mut locks = Locks::default();
        locks.ask(0, 1, true).unwrap();
        locks.ask(1, 1, true).unwrap();
        assert_eq!(granted(&mut locks), [0]);
        assert!(locks.ask(0, 2, false).is_err() && locks.ask(1, 2, false).is_err());
    }
}
