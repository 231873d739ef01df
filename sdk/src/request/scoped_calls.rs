//! The forms of collectives on borrowed slices.

use super::{Scope, ScopedRequest};
use crate::communicator::{Collective, Communicator, Own};
use crate::{Equivalence, Rank, Reduction, Result};

/// The calls of the [`Communicator`] that have these names. All ranks start a call at the same place among their calls;
/// whether a rank waits for it or calls the blocking form is its own business. A call that makes no sense is told by its
/// request. Sources are read before a method returns; the slice that comes back is the one that was written.
impl<'scope> Scope<'scope, '_> {
    /// Starts a [`barrier`](Communicator::barrier).
    pub fn barrier(&'scope self) -> ScopedRequest<'scope, ()> {
        let communicator: &Communicator = self.communicator;
        self.open(|| (), Ok(communicator.start_empty(&communicator.barrier_call())))
    }

    /// Starts a [`broadcast`](Communicator::broadcast).
    pub fn broadcast<T: Equivalence>(
        &'scope self,
        values: &'scope mut [T],
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = values.len();
        let call = self.communicator.broadcast_call::<T>(count, root);
        self.start_in_place(call, values)
    }

    /// Starts an [`all_reduce`](Communicator::all_reduce).
    pub fn all_reduce<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        values: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = values.len();
        let call = self.communicator.all_reduce_call(count, &reduction);
        self.start_in_place(call, values)
    }

    /// Starts an [`all_reduce_into`](Communicator::all_reduce_into).
    pub fn all_reduce_into<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let call = self.communicator.all_reduce_call(source.len(), &reduction);
        self.start_into(call, source, destination)
    }

    /// Starts a [`reduce`](Communicator::reduce).
    pub fn reduce<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        values: &'scope mut [T],
        root: Rank,
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = values.len();
        let call = self.communicator.reduce_call(count, root, &reduction);
        self.start_in_place(call, values)
    }

    /// Starts a [`reduce_into`](Communicator::reduce_into).
    pub fn reduce_into<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        root: Rank,
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let destination = if self.communicator.rank() == root { destination } else { &mut [] };
        let call = self.communicator.reduce_call(source.len(), root, &reduction);
        self.start_into(call, source, destination)
    }

    /// Starts a [`scan`](Communicator::scan).
    pub fn scan<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        values: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = values.len();
        let call = self.communicator.scan_call(count, &reduction);
        self.start_in_place(call, values)
    }

    /// Starts a [`scan_into`](Communicator::scan_into).
    pub fn scan_into<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let call = self.communicator.scan_call(source.len(), &reduction);
        self.start_into(call, source, destination)
    }

    /// Starts an [`exclusive_scan`](Communicator::exclusive_scan).
    pub fn exclusive_scan<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        values: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = values.len();
        let call = self.communicator.exclusive_scan_call(count, &reduction);
        self.start_in_place(call, values)
    }

    /// Starts an [`exclusive_scan_into`](Communicator::exclusive_scan_into).
    pub fn exclusive_scan_into<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let destination = if self.communicator.rank() > 0 { destination } else { &mut [] };
        let call = self.communicator.exclusive_scan_call(source.len(), &reduction);
        self.start_into(call, source, destination)
    }

    /// Starts an [`all_gather_into`](Communicator::all_gather_into).
    pub fn all_gather_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let call = self.communicator.all_gather_call::<T>(source.len());
        self.start_into(call, source, destination)
    }

    /// Starts an [`all_gather_in_place`](Communicator::all_gather_in_place).
    pub fn all_gather_in_place<T: Equivalence>(
        &'scope self,
        values: &'scope mut [T],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = values.len();
        let call =
            self.communicator.share_of(count).and_then(|count| self.communicator.all_gather_call::<T>(count));
        self.start_in_place(call, values)
    }

    /// Starts an [`all_gather_varying_into`](Communicator::all_gather_varying_into).
    pub fn all_gather_varying_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        counts: &[usize],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let call = self.communicator.all_gather_varying_call::<T>(counts);
        self.start_into(call, source, destination)
    }

    /// Starts a [`gather_into`](Communicator::gather_into).
    pub fn gather_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let destination = if self.communicator.rank() == root { destination } else { &mut [] };
        let call = self.communicator.gather_call::<T>(source.len(), root);
        self.start_into(call, source, destination)
    }

    /// Starts a [`scatter_into`](Communicator::scatter_into).
    pub fn scatter_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let source = if self.communicator.rank() == root { source } else { &[] };
        let count = destination.len();
        let call = self.communicator.scatter_call::<T>(count, root);
        self.start_into(call, source, destination)
    }

    /// Starts an [`all_to_all_into`](Communicator::all_to_all_into).
    pub fn all_to_all_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let call = self
            .communicator
            .share_of(source.len())
            .and_then(|count| self.communicator.all_to_all_call::<T>(count));
        self.start_into(call, source, destination)
    }

    /// Starts a [`reduce_scatter_into`](Communicator::reduce_scatter_into).
    pub fn reduce_scatter_into<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let count = destination.len();
        let call = self.communicator.reduce_scatter_call(count, &reduction);
        self.start_into(call, source, destination)
    }

    /// Starts a [`reduce_scatter_varying_into`](Communicator::reduce_scatter_varying_into).
    pub fn reduce_scatter_varying_into<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        counts: &[usize],
        reduction: R,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let call = self.communicator.reduce_scatter_varying_call(counts, &reduction);
        self.start_into(call, source, destination)
    }

    /// Starts a collective on values that are the whole working vector, at the beginning and at the end.
    fn start_in_place<T: Equivalence>(
        &'scope self,
        call: Result<Collective>,
        values: &'scope mut [T],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        self.lend(values, |communicator, values| call.map(|call| communicator.start_in_place(call, values)))
    }

    /// Starts a collective that begins in `source` and ends in `destination`.
    fn start_into<T: Equivalence>(
        &'scope self,
        call: Result<Collective>,
        source: &[T],
        destination: &'scope mut [T],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        self.lend(destination, |communicator, destination| {
            communicator.start_into(call?, &Own::of(source), destination)
        })
    }
}
