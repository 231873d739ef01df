//! Collectives on slices.

use super::Communicator;
use super::call::{Collective, Operation, misuse, pack, unpack, with_bytes};
use crate::buffer::Reducer;
use crate::buffer::Span;
use crate::engine::{Begin, Job};
use crate::plan;
use crate::plan::Plan;
use crate::{Rank, Result};
use gradwire_schema::{CallSignature, Datatype, Equivalence, Reduction};

impl Operation {
    pub(super) fn new<T: Equivalence, R: Reduction<T>>(reduction: &R) -> Self {
        Self { reducer: Reducer::new::<T, R>(reduction), properties: reduction.properties() }
    }
}

/// What a signature says of a type.
struct Kind<T>(std::marker::PhantomData<T>);

impl<T: Equivalence> Kind<T> {
    const DATATYPE: Option<Datatype> = datatype_of(T::FINGERPRINT);
}

/// The number format whose fingerprint this is.
const fn datatype_of(fingerprint: u64) -> Option<Datatype> {
    let mut index = 0;
    while index < Datatype::ALL.len() {
        if Datatype::ALL[index].fingerprint() == fingerprint {
            return Some(Datatype::ALL[index]);
        }
        index += 1;
    }
    None
}

/// The signature of a call on `count` values of `T`.
pub(super) fn signature<T: Equivalence>(
    collective: gradwire_schema::Collective,
    count: usize,
    root: Option<Rank>,
    operation: Option<&Operation>,
) -> CallSignature {
    CallSignature {
        datatype: Kind::<T>::DATATYPE,
        layout: if Kind::<T>::DATATYPE.is_some() { 0 } else { T::FINGERPRINT },
        root: root.map(|root| root as u32),
        operation: operation.map(|operation| operation.properties.id),
        count: count as u64,
        ..CallSignature::new(collective)
    }
}

impl Communicator {
    /// Returns once all ranks have called it.
    ///
    /// # Errors
    ///
    /// Those of every collective: see [`Error`](crate::Error).
    pub fn barrier(&self) -> Result<()> {
        let signature = CallSignature::new(gradwire_schema::Collective::Barrier);
        let shape = self.shape::<u8>(plan::Collective::Broadcast, 0, 0, None);
        let collective = Collective { signature, shape, operation: None };
        self.collect(&collective, &mut [])
    }

    /// Overwrites every rank's values with those of `root`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, and those of every collective.
    pub fn broadcast<T: Equivalence>(&self, values: &mut [T], root: Rank) -> Result<()> {
        self.check_root(root)?;
        let signature =
            signature::<T>(gradwire_schema::Collective::Broadcast, values.len(), Some(root), None);
        let shape = self.shape::<T>(plan::Collective::Broadcast, values.len(), root, None);
        let collective = Collective { signature, shape, operation: None };
        with_bytes(values, |bytes| self.collect(&collective, bytes))
    }

    /// Reduces the values of all ranks, element by element; every rank gets the result in place.
    ///
    /// # Errors
    ///
    /// Those of every collective. After [`Mismatch`](crate::Error::Mismatch) the values are untouched; after other errors of
    /// peers they are unspecified.
    pub fn all_reduce<T: Equivalence, R: Reduction<T>>(&self, values: &mut [T], reduction: R) -> Result<()> {
        let operation = Operation::new(&reduction);
        let count = values.len();
        let signature = signature::<T>(gradwire_schema::Collective::AllReduce, count, None, Some(&operation));
        with_bytes(values, |bytes| self.all_reduce_bytes::<T>(bytes, count, signature, &operation))
    }

    /// As [`all_reduce`](Self::all_reduce), with the result in `destination`; `source` is unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the lengths differ, and those of every collective.
    pub fn all_reduce_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        reduction: R,
    ) -> Result<()> {
        check_lengths(source.len(), destination.len(), "as long as the source")?;
        let operation = Operation::new(&reduction);
        let signature =
            signature::<T>(gradwire_schema::Collective::AllReduce, source.len(), None, Some(&operation));
        // Copied first: the working vector holds partial results. A mismatch must leave the destination alone.
        let mut working = pack(source);
        self.all_reduce_bytes::<T>(&mut working, source.len(), signature, &operation)?;
        unpack(&working, destination)
    }

    /// An all_reduce for the engine, without the short cut for small ones: what a request carries out.
    pub(crate) fn planned_all_reduce<T: Equivalence, R: Reduction<T>>(
        &self,
        working: Span,
        count: usize,
        reduction: &R,
    ) -> (Begin, Job) {
        let operation = Operation::new(reduction);
        let signature = signature::<T>(gradwire_schema::Collective::AllReduce, count, None, Some(&operation));
        let shape = self.shape::<T>(plan::Collective::AllReduce, count, 0, Some(&operation));
        let plan = Plan::new(self.job().select(&shape), shape, self.rank());
        (self.begin(signature), Job { plan, working, reducer: Some(operation.reducer) })
    }

    pub(super) fn all_reduce_bytes<T: Equivalence>(
        &self,
        bytes: &mut [u8],
        count: usize,
        signature: CallSignature,
        operation: &Operation,
    ) -> Result<()> {
        let shape = self.shape::<T>(plan::Collective::AllReduce, count, 0, Some(operation));
        let collective = Collective { signature, shape, operation: Some(operation) };
        self.collect(&collective, bytes)
    }

    /// Reduces the values of all ranks, element by element, into those of `root`. Other ranks' values are unchanged.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, and those of every collective.
    pub fn reduce<T: Equivalence, R: Reduction<T>>(
        &self,
        values: &mut [T],
        root: Rank,
        reduction: R,
    ) -> Result<()> {
        self.check_root(root)?;
        let operation = Operation::new(&reduction);
        let count = values.len();
        let signature =
            signature::<T>(gradwire_schema::Collective::Reduce, count, Some(root), Some(&operation));
        let shape = self.shape::<T>(plan::Collective::Reduce, count, root, Some(&operation));
        let collective = Collective { signature, shape, operation: Some(&operation) };
        if self.rank == root {
            return with_bytes(values, |bytes| self.collect(&collective, bytes));
        }
        // Partial results pass through the working vector: the values themselves stay as they are.
        self.collect(&collective, &mut pack(values))
    }

    /// Every rank gets the values of all ranks, in rank order. `destination` is `size` times as long as `source`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, and those of every collective.
    pub fn all_gather_into<T: Equivalence>(&self, source: &[T], destination: &mut [T]) -> Result<()> {
        check_lengths(
            self.times(source.len())?,
            destination.len(),
            "as long as the sources of all ranks together",
        )?;
        let signature = signature::<T>(gradwire_schema::Collective::AllGather, source.len(), None, None);
        let shape = self.shape::<T>(plan::Collective::AllGather, source.len(), 0, None);
        self.gather_bytes(source, destination, &Collective { signature, shape, operation: None })
    }

    /// `root` gets the values of all ranks, in rank order: there `destination` is `size` times as long as `source`,
    /// elsewhere it is not used and may be empty.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, or when there is no such rank, and those of every collective.
    pub fn gather_into<T: Equivalence>(&self, source: &[T], destination: &mut [T], root: Rank) -> Result<()> {
        self.check_root(root)?;
        let total = self.times(source.len())?;
        let signature = signature::<T>(gradwire_schema::Collective::Gather, source.len(), Some(root), None);
        let shape = self.shape::<T>(plan::Collective::Gather, source.len(), root, None);
        let collective = Collective { signature, shape, operation: None };
        if self.rank == root {
            check_lengths(total, destination.len(), "as long as the sources of all ranks together")?;
            return self.gather_bytes(source, destination, &collective);
        }
        // What passes through on its way to the root.
        let own = pack(source);
        let mut working = vec![0; own.len() * self.size()];
        let block = own.len() * self.rank..own.len() * (self.rank + 1);
        working[block].copy_from_slice(&own);
        self.collect(&collective, &mut working)
    }

    /// Reduces the values of all ranks, element by element, and gives each rank its part of the result: `source` is `size`
    /// times as long as `destination`, and rank `r` gets the `r`-th block.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, and those of every collective.
    pub fn reduce_scatter_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        reduction: R,
    ) -> Result<()> {
        let count = destination.len();
        check_lengths(
            self.times(count)?,
            source.len(),
            "the source must be as long as the parts of all ranks together",
        )?;
        let operation = Operation::new(&reduction);
        let signature =
            signature::<T>(gradwire_schema::Collective::ReduceScatter, count, None, Some(&operation));
        let shape = self.shape::<T>(plan::Collective::ReduceScatter, count, 0, Some(&operation));
        let collective = Collective { signature, shape, operation: Some(&operation) };
        let mut working = pack(source);
        self.collect(&collective, &mut working)?;
        let part = collective.shape.byte_range(&collective.shape.result(self.rank));
        unpack(&working[part], destination)
    }

    fn gather_bytes<T: Equivalence>(
        &self,
        source: &[T],
        destination: &mut [T],
        collective: &Collective<'_>,
    ) -> Result<()> {
        let own = pack(source);
        let block = own.len() * self.rank..own.len() * (self.rank + 1);
        with_bytes(destination, |bytes| {
            // Only the own part is written before all ranks have agreed, and put back if they do not.
            let before = bytes[block.clone()].to_vec();
            bytes[block.clone()].copy_from_slice(&own);
            let result = self.collect(collective, bytes);
            if let Err(crate::Error::Mismatch { .. }) = result {
                bytes[block].copy_from_slice(&before);
            }
            result
        })
    }

    fn times(&self, count: usize) -> Result<usize> {
        count
            .checked_mul(self.size())
            .ok_or_else(|| misuse(format!("{count} elements of each rank are too many")))
    }
}

fn check_lengths(expected: usize, found: usize, what: &str) -> Result<()> {
    if expected == found {
        Ok(())
    } else {
        Err(misuse(format!("a buffer has {found} elements instead of {expected}: make it {what}")))
    }
}
