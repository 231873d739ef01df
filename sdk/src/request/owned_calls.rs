//! The forms of collectives that take their memory along.

use super::Request;
use crate::buffer::Buffer;
use crate::communicator::{Collective, Communicator, Own};
use crate::{Element, Rank, Reduction, Result};

/// The forms of collectives that take their memory along. All ranks start a call at the same place among their calls;
/// whether a rank waits for it or calls the blocking form is its own business. A call that makes no sense is told by its
/// request, together with the memory. Buffers that are not used on a rank should be empty there.
impl Communicator {
    /// Starts a [`barrier`](Self::barrier).
    pub fn start_barrier(&self) -> Request<()> {
        Request::new(self, (), Ok(self.start_empty(&self.barrier_call())))
    }

    /// Starts a [`broadcast`](Self::broadcast).
    pub fn start_broadcast<T: Element>(&self, buffer: Buffer<T>, root: Rank) -> Request<Buffer<T>> {
        let call = self.broadcast_call::<T>(buffer.len(), root);
        self.request_in_place(call, buffer)
    }

    /// Starts an [`all_reduce`](Self::all_reduce).
    pub fn start_all_reduce<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        reduction: R,
    ) -> Request<Buffer<T>> {
        let call = self.all_reduce_call(buffer.len(), &reduction);
        self.request_in_place(call, buffer)
    }

    /// Starts a [`reduce`](Self::reduce).
    pub fn start_reduce<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        root: Rank,
        reduction: R,
    ) -> Request<Buffer<T>> {
        let call = self.reduce_call(buffer.len(), root, &reduction);
        self.request_in_place(call, buffer)
    }

    /// Starts a [`scan`](Self::scan).
    pub fn start_scan<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        reduction: R,
    ) -> Request<Buffer<T>> {
        let call = self.scan_call(buffer.len(), &reduction);
        self.request_in_place(call, buffer)
    }

    /// Starts an [`exclusive_scan`](Self::exclusive_scan).
    pub fn start_exclusive_scan<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        reduction: R,
    ) -> Request<Buffer<T>> {
        let call = self.exclusive_scan_call(buffer.len(), &reduction);
        self.request_in_place(call, buffer)
    }

    /// Starts an [`all_gather_into`](Self::all_gather_into).
    pub fn start_all_gather<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.all_gather_call::<T>(source.len());
        self.request_into(call, source, destination)
    }

    /// Starts an [`all_gather_varying_into`](Self::all_gather_varying_into).
    pub fn start_all_gather_varying<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        counts: &[usize],
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.all_gather_varying_call::<T>(counts);
        self.request_into(call, source, destination)
    }

    /// Starts a [`gather_into`](Self::gather_into).
    pub fn start_gather<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        root: Rank,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.gather_call::<T>(source.len(), root);
        self.request_into(call, source, destination)
    }

    /// Starts a [`scatter_into`](Self::scatter_into).
    pub fn start_scatter<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        root: Rank,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.scatter_call::<T>(destination.len(), root);
        self.request_into(call, source, destination)
    }

    /// Starts an [`all_to_all_into`](Self::all_to_all_into).
    pub fn start_all_to_all<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.share_of(source.len()).and_then(|count| self.all_to_all_call::<T>(count));
        self.request_into(call, source, destination)
    }

    /// Starts a [`reduce_scatter_into`](Self::reduce_scatter_into).
    pub fn start_reduce_scatter<T: Element, R: Reduction<T>>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        reduction: R,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.reduce_scatter_call(destination.len(), &reduction);
        self.request_into(call, source, destination)
    }

    /// Starts a [`reduce_scatter_varying_into`](Self::reduce_scatter_varying_into).
    pub fn start_reduce_scatter_varying<T: Element, R: Reduction<T>>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        counts: &[usize],
        reduction: R,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.reduce_scatter_varying_call(counts, &reduction);
        self.request_into(call, source, destination)
    }

    fn request_in_place<T: Element>(
        &self,
        call: Result<Collective>,
        mut buffer: Buffer<T>,
    ) -> Request<Buffer<T>> {
        let start = call.map(|call| self.start_in_place(call, buffer.target()));
        Request::new(self, buffer, start)
    }

    fn request_into<T: Element>(
        &self,
        call: Result<Collective>,
        source: Buffer<T>,
        mut destination: Buffer<T>,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let start = call.and_then(|call| self.start_into(call, &Own::of(&source), destination.target()));
        Request::new(self, (source, destination), start)
    }
}
