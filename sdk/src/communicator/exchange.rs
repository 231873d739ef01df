//! Collectives that move blocks of equal lengths, beside the gathering ones.

use super::call::{Collective, misuse};
use super::{Communicator, Telling};
use crate::{Rank, Result, plan};
use gradwire_schema::{Equivalence, Reduction};

/// What the calls are, for whichever form of call carries them out.
impl Communicator {
    pub(crate) fn scatter_call<T: Equivalence>(&self, count: usize, root: Rank) -> Result<Collective> {
        self.describe::<T>(plan::Collective::Scatter, count, Some(root), None)
    }

    /// As [`scatter_call`](Self::scatter_call), where only the root knows the `len` of its source.
    pub(crate) fn telling_scatter<T: Equivalence>(&self, len: usize, root: Rank) -> Result<Telling> {
        let call = self.scatter_call::<T>(0, root)?;
        let size = self.size();
        Ok(self.telling::<T>(call.signature, &[len as u64], move |told| {
            call.with_count(share(told[root], size)?)
        }))
    }

    pub(crate) fn all_to_all_call<T: Equivalence>(&self, count: usize) -> Result<Collective> {
        self.describe::<T>(plan::Collective::AllToAll, count, None, None)
    }
}

impl Communicator {
    /// Gives every rank its block of the values of `root`, in rank order: there `source` is `size` times as long as
    /// `destination`, elsewhere it is not used and may be empty.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, or when there is no such rank, and those of every collective.
    pub fn scatter_into<T: Equivalence>(
        &self,
        source: &[T],
        destination: &mut [T],
        root: Rank,
    ) -> Result<()> {
        let source = if self.rank == root { source } else { &[] };
        self.call_into(&self.scatter_call::<T>(destination.len(), root)?, source, destination)
    }

    /// Every rank gets from every rank the block that is meant for it: block `r` of `source` goes to rank `r`, and block
    /// `r` of `destination` comes from there. Both are as long, and that is a multiple of the number of ranks.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when they are not, and those of every collective.
    pub fn all_to_all_into<T: Equivalence>(&self, source: &[T], destination: &mut [T]) -> Result<()> {
        self.call_into(&self.all_to_all_call::<T>(self.share_of(source.len())?)?, source, destination)
    }

    /// As [`all_gather_into`](Self::all_gather_into), with the result in a new vector.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn all_gather<T: Equivalence>(&self, source: &[T]) -> Result<Vec<T>> {
        self.call_owned(&self.all_gather_call::<T>(source.len())?, source)
    }

    /// Every rank gets the values of all ranks, in rank order. Each passes a slice for all of them, of a length that is a
    /// multiple of the number of ranks, with its own values in their place.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when it is not, and those of every collective.
    pub fn all_gather_in_place<T: Equivalence>(&self, values: &mut [T]) -> Result<()> {
        self.call(&self.all_gather_call::<T>(self.share_of(values.len())?)?, values)
    }

    /// As [`gather_into`](Self::gather_into), with the result in a new vector: `None` on all ranks but the root.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, and those of every collective.
    pub fn gather<T: Equivalence>(&self, source: &[T], root: Rank) -> Result<Option<Vec<T>>> {
        let all = self.call_owned(&self.gather_call::<T>(source.len(), root)?, source)?;
        Ok((self.rank == root).then_some(all))
    }

    /// As [`scatter_into`](Self::scatter_into), with the result in a new vector. Only `root` need know how long it is: it
    /// is told to the others in a first small message.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) on all ranks when the length of the root's source is no multiple of the number of
    /// ranks, or when there is no such rank, and those of every collective.
    pub fn scatter<T: Equivalence>(&self, source: &[T], root: Rank) -> Result<Vec<T>> {
        let source = if self.rank == root { source } else { &[] };
        Ok(self.call_telling(self.telling_scatter::<T>(source.len(), root)?, source)?.1)
    }

    /// As [`all_to_all_into`](Self::all_to_all_into), with the result in a new vector.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the length is no multiple of the number of ranks, and those of every
    /// collective.
    pub fn all_to_all<T: Equivalence>(&self, source: &[T]) -> Result<Vec<T>> {
        self.call_owned(&self.all_to_all_call::<T>(self.share_of(source.len())?)?, source)
    }

    /// As [`reduce_scatter_into`](Self::reduce_scatter_into), with the result in a new vector.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the length is no multiple of the number of ranks, and those of every
    /// collective.
    pub fn reduce_scatter<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        reduction: R,
    ) -> Result<Vec<T>> {
        self.call_owned(&self.reduce_scatter_call(self.share_of(source.len())?, &reduction)?, source)
    }

    /// How many of `len` elements are one rank's, where all have as many.
    pub(crate) fn share_of(&self, len: usize) -> Result<usize> {
        share(len, self.size())
    }
}

fn share(len: usize, ranks: usize) -> Result<usize> {
    if len.is_multiple_of(ranks) {
        return Ok(len / ranks);
    }
    Err(misuse(format!(
        "{len} elements cannot be shared out equally to {ranks} ranks: make it a multiple, or use a call with counts"
    )))
}
