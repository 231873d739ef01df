//! What calls give back that move a different number of elements for each rank.

use crate::Rank;

/// Values of all ranks, one block for each, in rank order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PerRank<T> {
    values: Vec<T>,
    counts: Vec<usize>,
}

impl<T> PerRank<T> {
    /// Blocks of these lengths, which are all of the values.
    pub(super) fn new(values: Vec<T>, counts: Vec<usize>) -> Self {
        Self { values, counts }
    }

    /// The block of a rank; empty for ranks that do not exist.
    #[must_use]
    pub fn of(&self, rank: Rank) -> &[T] {
        let start: usize = self.counts.iter().take(rank).sum();
        let count = self.counts.get(rank).copied().unwrap_or(0);
        self.values.get(start..start + count).unwrap_or_default()
    }

    /// How many values each rank has.
    #[must_use]
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The values of all ranks.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values of all ranks.
    #[must_use]
    pub fn into_values(self) -> Vec<T> {
        self.values
    }
}
