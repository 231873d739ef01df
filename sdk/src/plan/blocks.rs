//! Blocks of unequal lengths.

use std::ops::Range;
use std::sync::Arc;

/// Where blocks of given lengths begin and end when they lie one behind the other, in one row or in several.
///
/// Kept as running sums: a block is found at once, and ranks that agree on the lengths agree on every range.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Blocks {
    /// Blocks of a row.
    width: usize,
    /// Where each block ends in its row, row by row.
    ends: Arc<[usize]>,
}

impl Blocks {
    /// One row: as many elements for each rank. `None` when they are too many together.
    pub(crate) fn new(counts: &[usize]) -> Option<Self> {
        Self::rows(counts.len(), counts.iter().copied())
    }

    /// What ranks send to each other: `counts[from * ranks + to]` elements. The rows are what each rank sends, then what
    /// each receives. `None` when some rank's are too many together.
    pub(crate) fn exchange(ranks: usize, counts: &[usize]) -> Option<Self> {
        debug_assert_eq!(counts.len(), ranks * ranks);
        let received = (0..ranks).flat_map(|to| counts.iter().skip(to).step_by(ranks.max(1)));
        Self::rows(ranks, counts.iter().chain(received).copied())
    }

    fn rows(width: usize, counts: impl Iterator<Item = usize>) -> Option<Self> {
        let mut end = 0_usize;
        let ends = counts.enumerate().map(|(index, count)| {
            let start = if index.is_multiple_of(width) { 0 } else { end };
            end = start.checked_add(count)?;
            Some(end)
        });
        Some(Self { width, ends: ends.collect::<Option<_>>()? })
    }

    /// A block of a row.
    pub(crate) fn range(&self, row: usize, index: usize) -> Range<usize> {
        let at = row * self.width + index;
        let start = if index == 0 { 0 } else { self.ends[at - 1] };
        start..self.ends[at]
    }

    /// Elements of a row.
    pub(crate) fn total(&self, row: usize) -> usize {
        match self.width {
            0 => 0,
            width => self.ends[(row + 1) * width - 1],
        }
    }

    /// Elements of the longest block of all.
    pub(crate) fn longest(&self) -> usize {
        let rows = self.ends.len().checked_div(self.width).unwrap_or(0);
        (0..rows)
            .flat_map(|row| (0..self.width).map(move |index| self.range(row, index).len()))
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Blocks;

    #[test]
    fn blocks_lie_behind_one_another() {
        let blocks = Blocks::new(&[3, 0, 4]).unwrap();
        assert_eq!([0, 1, 2].map(|rank| blocks.range(0, rank)), [0..3, 3..3, 3..7]);
        assert_eq!((blocks.total(0), blocks.longest()), (7, 4));
        assert_eq!(Blocks::new(&[usize::MAX, 1]), None);
    }

    #[test]
    fn what_one_sends_another_receives() {
        let blocks = Blocks::exchange(2, &[1, 2, 3, 4]).unwrap();
        let row = |row| [0, 1].map(|index| blocks.range(row, index));
        assert_eq!([row(0), row(1)], [[0..1, 1..3], [0..3, 3..7]], "sent");
        assert_eq!([row(2), row(3)], [[0..1, 1..4], [0..2, 2..6]], "received");
    }
}
