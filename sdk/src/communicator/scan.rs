//! Prefix reductions, and reductions to one rank out of place.

use super::Communicator;
use super::call::{Collective, Operation};
use crate::{Rank, Result, plan};
use gradwire_schema::{Equivalence, Reduction};

/// What the calls are, for whichever form of call carries them out.
impl Communicator {
    pub(crate) fn scan_call<T: Equivalence, R: Reduction<T>>(
        &self,
        count: usize,
        reduction: &R,
    ) -> Result<Collective> {
        self.describe::<T>(plan::Collective::Scan, count, None, Some(Operation::new(reduction)))
    }

    pub(crate) fn exclusive_scan_call<T: Equivalence, R: Reduction<T>>(
        &self,
        count: usize,
        reduction: &R,
    ) -> Result<Collective> {
        self.describe::<T>(plan::Collective::ExclusiveScan, count, None, Some(Operation::new(reduction)))
    }
}

impl Communicator {
    /// Reduces the values of the ranks up to this one, its own included, element by element and always in rank order;
    /// in place. An average is that of as many ranks.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn scan<T: Equivalence, R: Reduction<T>>(&self, values: &mut [T], reduction: R) -> Result<()> {
        self.call(&self.scan_call(values.len(), &reduction)?, values)
    }

    /// As [`scan`](Self::scan), with the result in `destination`; `source` is unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the lengths differ, and those of every collective.
    pub fn scan_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        reduction: R,
    ) -> Result<()> {
        self.call_into(&self.scan_call(source.len(), &reduction)?, source, destination)
    }

    /// Reduces the values of the ranks before this one, element by element and always in rank order; in place. Rank 0 has
    /// none before it: its values stay as they are.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn exclusive_scan<T: Equivalence, R: Reduction<T>>(
        &self,
        values: &mut [T],
        reduction: R,
    ) -> Result<()> {
        self.call(&self.exclusive_scan_call(values.len(), &reduction)?, values)
    }

    /// As [`exclusive_scan`](Self::exclusive_scan), with the result in `destination`; `source` is unchanged. On rank 0 the
    /// destination is not used and may be empty.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the lengths differ, and those of every collective.
    pub fn exclusive_scan_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        reduction: R,
    ) -> Result<()> {
        let destination = if self.rank > 0 { destination } else { &mut [] };
        self.call_into(&self.exclusive_scan_call(source.len(), &reduction)?, source, destination)
    }

    /// As [`reduce`](Self::reduce), with the result in the `destination` of `root`; elsewhere that is not used and may be
    /// empty. `source` is unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the lengths differ, or when there is no such rank, and those of every
    /// collective.
    pub fn reduce_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        root: Rank,
        reduction: R,
    ) -> Result<()> {
        let destination = if self.rank == root { destination } else { &mut [] };
        self.call_into(&self.reduce_call(source.len(), root, &reduction)?, source, destination)
    }
}
