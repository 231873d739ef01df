//! The forms of calls in which the ranks first tell each other how much there is. Both parts go on by themselves.

use super::{Request, Scope, ScopedRequest};
use crate::buffer::{Buffer, Lent, Target};
use crate::communicator::{Collective, Communicator, Own, PerRank, Sparse, Start, Telling, fold_sparse};
use crate::{Element, Equivalence, Rank, Reduction, Result};

/// What comes back beside the result of an exchange with neighbours: what was sent, and what was received.
type Exchanged<T> = (Vec<(Rank, Buffer<T>)>, Vec<(Rank, Buffer<T>)>);

/// The calls in which ranks have as many elements as they like. What a result needs is allocated once it is known how much
/// that is; it comes beside the memory that was handed over.
impl Communicator {
    /// Starts a [`gather_varying`](Self::gather_varying).
    pub fn start_gather_varying<T: Element>(
        &self,
        source: Buffer<T>,
        root: Rank,
    ) -> Request<Buffer<T>, Option<PerRank<T>>> {
        let call = self.telling_gather::<T>(source.len(), root);
        self.request_telling(call, source, |call, rank, values| call.per_rank_at_root(rank, values))
    }

    /// Starts a [`gather_varying_into`](Self::gather_varying_into); resolves to how many elements each rank had.
    pub fn start_gather_varying_into<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        root: Rank,
    ) -> Request<(Buffer<T>, Buffer<T>), Vec<usize>> {
        let call = self.telling_gather_into::<T>(source.len(), destination.len(), root);
        self.request_telling_into(call, source, destination, |call, rank| call.counts(rank))
    }

    /// Starts a [`scatter_varying`](Self::scatter_varying).
    pub fn start_scatter_varying<T: Element>(
        &self,
        source: Buffer<T>,
        counts: &[usize],
        root: Rank,
    ) -> Request<Buffer<T>, Vec<T>> {
        let call = self.telling_scatter_varying::<T>(source.len(), counts, root);
        self.request_telling(call, source, |_, _, values| values)
    }

    /// Starts a [`scatter_varying_into`](Self::scatter_varying_into).
    pub fn start_scatter_varying_into<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        counts: &[usize],
        root: Rank,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.telling_scatter_varying_into::<T>(source.len(), destination.len(), counts, root);
        self.request_telling_into(call, source, destination, |_, _| ())
    }

    /// Starts an [`all_to_all_varying`](Self::all_to_all_varying).
    pub fn start_all_to_all_varying<T: Element>(
        &self,
        source: Buffer<T>,
        counts: &[usize],
    ) -> Request<Buffer<T>, PerRank<T>> {
        let call = self.telling_all_to_all::<T>(source.len(), counts);
        self.request_telling(call, source, |call, rank, values| call.per_rank(rank, values))
    }

    /// Starts an [`all_to_all_varying_into`](Self::all_to_all_varying_into).
    pub fn start_all_to_all_varying_into<T: Element>(
        &self,
        source: Buffer<T>,
        source_counts: &[usize],
        destination: Buffer<T>,
        destination_counts: &[usize],
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let (sent, received) = ((source.len(), source_counts), (destination.len(), destination_counts));
        let call = self.telling_all_to_all_into::<T>(sent, received);
        self.request_telling_into(call, source, destination, |_, _| ())
    }

    /// Starts a [`neighbour_exchange`](Self::neighbour_exchange). What is sent is read before the method returns.
    pub fn start_neighbour_exchange<T: Element>(
        &self,
        sent: Vec<(Rank, Buffer<T>)>,
        mut received: Vec<(Rank, Buffer<T>)>,
    ) -> Request<Exchanged<T>> {
        let slices: Vec<(Rank, &[T])> = sent.iter().map(|(rank, values)| (*rank, &values[..])).collect();
        let targets = received.iter_mut().map(|(rank, values)| (*rank, values.target())).collect();
        let start = self.start_neighbours(&slices, targets);
        Request::new(self, (sent, received), start)
    }

    /// Starts a [`sparse_all_reduce`](Self::sparse_all_reduce). Indices and values are read before the method returns.
    pub fn start_sparse_all_reduce<T: Equivalence, R: Reduction<T>>(
        &self,
        length: usize,
        indices: &[usize],
        values: &[T],
        reduction: R,
    ) -> Request<(), Sparse<T>> {
        Request::new(self, (), self.start_sparse(length, indices, values, reduction))
    }

    fn request_telling<T: Element, R: 'static>(
        &self,
        call: Result<Telling>,
        mut source: Buffer<T>,
        finish: fn(Collective, Rank, Vec<T>) -> R,
    ) -> Request<Buffer<T>, R> {
        let start = call.map(|call| {
            let (begin, own) = (self.begin(call.signature()), Own::of_target(source.target()));
            self.start_telling(begin, call, own, move |call, rank, values| Ok(finish(call, rank, values)))
        });
        Request::new(self, source, start)
    }

    fn request_telling_into<T: Element, R: 'static>(
        &self,
        call: Result<Telling>,
        mut source: Buffer<T>,
        mut destination: Buffer<T>,
        finish: fn(Collective, Rank) -> R,
    ) -> Request<(Buffer<T>, Buffer<T>), R> {
        let start = call.map(|call| {
            let (begin, own) = (self.begin(call.signature()), Own::of_target(source.target()));
            self.start_telling_into(begin, call, own, destination.target(), finish)
        });
        Request::new(self, (source, destination), start)
    }
}

/// The calls in which ranks have as many elements as they like. Sources are read before a method returns; a result that
/// nobody lent memory for is what the request is waited for.
impl<'scope> Scope<'scope, '_> {
    /// Starts an [`all_gather_varying`](Communicator::all_gather_varying).
    pub fn all_gather_varying<T: Equivalence>(
        &'scope self,
        source: &[T],
    ) -> ScopedRequest<'scope, (), PerRank<T>> {
        let call = self.communicator.telling_all_gather::<T>(source.len());
        self.start_telling(call, source, |call, rank, values| call.per_rank(rank, values))
    }

    /// Starts a [`gather_varying`](Communicator::gather_varying).
    pub fn gather_varying<T: Equivalence>(
        &'scope self,
        source: &[T],
        root: Rank,
    ) -> ScopedRequest<'scope, (), Option<PerRank<T>>> {
        let call = self.communicator.telling_gather::<T>(source.len(), root);
        self.start_telling(call, source, |call, rank, values| call.per_rank_at_root(rank, values))
    }

    /// Starts a [`gather_varying_into`](Communicator::gather_varying_into).
    pub fn gather_varying_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut [T], Vec<usize>> {
        let call = self.communicator.telling_gather_into::<T>(source.len(), destination.len(), root);
        self.start_telling_into(call, source, destination, |call, rank| call.counts(rank))
    }

    /// Starts a [`scatter`](Communicator::scatter).
    pub fn scatter<T: Equivalence>(
        &'scope self,
        source: &[T],
        root: Rank,
    ) -> ScopedRequest<'scope, (), Vec<T>> {
        let source = if self.communicator.rank() == root { source } else { &[] };
        let call = self.communicator.telling_scatter::<T>(source.len(), root);
        self.start_telling(call, source, |_, _, values| values)
    }

    /// Starts a [`scatter_varying`](Communicator::scatter_varying).
    pub fn scatter_varying<T: Equivalence>(
        &'scope self,
        source: &[T],
        counts: &[usize],
        root: Rank,
    ) -> ScopedRequest<'scope, (), Vec<T>> {
        let source = if self.communicator.rank() == root { source } else { &[] };
        let call = self.communicator.telling_scatter_varying::<T>(source.len(), counts, root);
        self.start_telling(call, source, |_, _, values| values)
    }

    /// Starts a [`scatter_varying_into`](Communicator::scatter_varying_into).
    pub fn scatter_varying_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        destination: &'scope mut [T],
        counts: &[usize],
        root: Rank,
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let source = if self.communicator.rank() == root { source } else { &[] };
        let room = destination.len();
        let call = self.communicator.telling_scatter_varying_into::<T>(source.len(), room, counts, root);
        self.start_telling_into(call, source, destination, |_, _| ())
    }

    /// Starts an [`all_to_all_varying`](Communicator::all_to_all_varying).
    pub fn all_to_all_varying<T: Equivalence>(
        &'scope self,
        source: &[T],
        counts: &[usize],
    ) -> ScopedRequest<'scope, (), PerRank<T>> {
        let call = self.communicator.telling_all_to_all::<T>(source.len(), counts);
        self.start_telling(call, source, |call, rank, values| call.per_rank(rank, values))
    }

    /// Starts an [`all_to_all_varying_into`](Communicator::all_to_all_varying_into).
    pub fn all_to_all_varying_into<T: Equivalence>(
        &'scope self,
        source: &[T],
        source_counts: &[usize],
        destination: &'scope mut [T],
        destination_counts: &[usize],
    ) -> ScopedRequest<'scope, &'scope mut [T]> {
        let (sent, received) = ((source.len(), source_counts), (destination.len(), destination_counts));
        let call = self.communicator.telling_all_to_all_into::<T>(sent, received);
        self.start_telling_into(call, source, destination, |_, _| ())
    }

    /// Starts a [`neighbour_exchange`](Communicator::neighbour_exchange).
    pub fn neighbour_exchange<T: Equivalence>(
        &'scope self,
        sent: &[(Rank, &[T])],
        received: Vec<(Rank, &'scope mut [T])>,
    ) -> ScopedRequest<'scope, Vec<(Rank, &'scope mut [T])>> {
        let (mut lent, mut targets) = (Vec::new(), Vec::new());
        for (rank, values) in received {
            let (slice, target) = Lent::new(values);
            lent.push((rank, slice));
            targets.push((rank, target));
        }
        let give_back = || lent.into_iter().map(|(rank, slice)| (rank, slice.give_back())).collect();
        self.open(give_back, self.communicator.start_neighbours(sent, targets))
    }

    /// Starts a [`sparse_all_reduce`](Communicator::sparse_all_reduce).
    pub fn sparse_all_reduce<T: Equivalence, R: Reduction<T>>(
        &'scope self,
        length: usize,
        indices: &[usize],
        values: &[T],
        reduction: R,
    ) -> ScopedRequest<'scope, (), Sparse<T>> {
        self.open(|| (), self.communicator.start_sparse(length, indices, values, reduction))
    }

    fn start_telling<T: Equivalence, R: 'static>(
        &'scope self,
        call: Result<Telling>,
        source: &[T],
        finish: fn(Collective, Rank, Vec<T>) -> R,
    ) -> ScopedRequest<'scope, (), R> {
        let communicator: &Communicator = self.communicator;
        let start = call.map(|call| {
            let (begin, own) = (communicator.begin(call.signature()), Own::copy_of(source));
            communicator
                .start_telling(begin, call, own, move |call, rank, values| Ok(finish(call, rank, values)))
        });
        self.open(|| (), start)
    }

    fn start_telling_into<T: Equivalence, R: 'static>(
        &'scope self,
        call: Result<Telling>,
        source: &[T],
        destination: &'scope mut [T],
        finish: fn(Collective, Rank) -> R,
    ) -> ScopedRequest<'scope, &'scope mut [T], R> {
        self.lend(destination, |communicator, destination| {
            let call = call?;
            let (begin, own) = (communicator.begin(call.signature()), Own::copy_of(source));
            Ok(communicator.start_telling_into(begin, call, own, destination, finish))
        })
    }
}

/// What both kinds of requests start.
impl Communicator {
    fn start_neighbours<T: Equivalence>(
        &self,
        sent: &[(Rank, &[T])],
        mut received: Vec<(Rank, Target<[T]>)>,
    ) -> Result<Start> {
        let lengths: Vec<(Rank, usize)> =
            received.iter_mut().map(|(rank, values)| (*rank, values.with(|values| values.len()))).collect();
        let (call, own) = self.telling_neighbours(sent, lengths.into_iter())?;
        let finish = move |call: Collective, rank, all: Vec<T>| {
            for (from, values) in &mut received {
                values.with(|values| values.copy_from_slice(&all[call.part_of_neighbour(rank, *from)]));
            }
            Ok(())
        };
        Ok(self.start_telling(self.begin(call.signature()), call, Own::copy_of(&own), finish))
    }

    fn start_sparse<T: Equivalence, R: Reduction<T>>(
        &self,
        length: usize,
        indices: &[usize],
        values: &[T],
        reduction: R,
    ) -> Result<Start<Sparse<T>>> {
        let (call, own) = self.telling_sparse(length, indices, values, &reduction)?;
        let finish = move |call: Collective, _, all: Vec<u8>| fold_sparse(&call, length, &all, &reduction);
        Ok(self.start_telling(self.begin(call.signature()), call, Own::Bytes(own.into()), finish))
    }
}
