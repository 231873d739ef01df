//! Requests that own their memory.

use super::Operation;
use crate::buffer::Buffer;
use crate::communicator::{Communicator, Start};
use crate::job::Job;
use crate::{Element, Error, Rank, Reduction, Result};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An operation under way that owns its memory `M`: a [`Buffer`], two of them, or nothing. Resolves to the memory and how
/// the operation ended.
///
/// Dropped, it is detached: the operation still completes, then its memory is freed.
#[must_use = "a request that is dropped completes, but nobody gets the result"]
pub struct Request<M: Send + Default + 'static, R: 'static = ()> {
    job: Arc<Job>,
    held: Option<(M, Operation<R>)>,
}

impl<M: Send + Default + 'static, R: 'static> Request<M, R> {
    /// Starts an operation on `memory`, which must be where `start` says that it is.
    pub(crate) fn new(communicator: &Communicator, memory: M, start: Result<Start<R>>) -> Self {
        let job = communicator.job().clone();
        let operation = Operation::start(&job, start);
        Self { job, held: Some((memory, operation)) }
    }

    /// Waits, turning the crank meanwhile.
    pub fn wait(mut self) -> (M, Result<R>) {
        match self.held.take() {
            Some((memory, operation)) => (memory, operation.wait(&self.job)),
            None => over(),
        }
    }

    /// Whether it has ended: the next [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn test(&self) -> bool {
        self.key().is_none_or(|key| self.job.shared().test(key))
    }

    pub(super) fn key(&self) -> Option<crate::engine::Key> {
        self.held.as_ref().and_then(|(_, operation)| operation.key())
    }

    pub(super) fn job(&self) -> &Arc<Job> {
        &self.job
    }
}

/// Polled again after it was ready.
fn over<M: Default, R>() -> (M, Result<R>) {
    (M::default(), Err(Error::Misuse("the request has ended already".into())))
}

impl<M: Send + Default + 'static, R: 'static> Future for Request<M, R> {
    type Output = (M, Result<R>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((memory, operation)) = self.held.take() else { return Poll::Ready(over()) };
        match operation {
            Operation::Refused(error) => Poll::Ready((memory, Err(error))),
            Operation::UnderWay(key, conclude) => match self.job.shared().poll(key, context.waker()) {
                Some(result) => Poll::Ready((memory, conclude(result))),
                None => {
                    self.held = Some((memory, Operation::UnderWay(key, conclude)));
                    Poll::Pending
                }
            },
        }
    }
}

impl<M: Send + Default + 'static, R: 'static> Unpin for Request<M, R> {}

impl<M: Send + Default + 'static, R: 'static> Drop for Request<M, R> {
    fn drop(&mut self) {
        if let Some((memory, Operation::UnderWay(key, conclude))) = self.held.take() {
            self.job.shared().detach(key, Box::new((memory, conclude)));
        }
    }
}

impl<M: Send + Default + 'static, R: 'static> fmt::Debug for Request<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// The forms of collectives that take their memory along. All ranks start a call at the same place among their calls; a
/// call that makes no sense is told by its request, together with the memory.
impl Communicator {
    /// Starts a [`barrier`](Self::barrier).
    pub fn start_barrier(&self) -> Request<()> {
        Request::new(self, (), Ok(self.start_empty(&self.barrier_call())))
    }

    /// Starts a [`broadcast`](Self::broadcast).
    pub fn start_broadcast<T: Element>(&self, mut buffer: Buffer<T>, root: Rank) -> Request<Buffer<T>> {
        let call = self.broadcast_call::<T>(buffer.len(), root);
        let start = call.map(|call| self.start_in_place(call, buffer.target()));
        Request::new(self, buffer, start)
    }

    /// Starts an [`all_reduce`](Self::all_reduce).
    pub fn start_all_reduce<T: Element, R: Reduction<T>>(
        &self,
        mut buffer: Buffer<T>,
        reduction: R,
    ) -> Request<Buffer<T>> {
        let call = self.all_reduce_call(buffer.len(), &reduction);
        let start = call.map(|call| self.start_in_place(call, buffer.target()));
        Request::new(self, buffer, start)
    }

    /// Starts a [`reduce`](Self::reduce).
    pub fn start_reduce<T: Element, R: Reduction<T>>(
        &self,
        mut buffer: Buffer<T>,
        root: Rank,
        reduction: R,
    ) -> Request<Buffer<T>> {
        let call = self.reduce_call(buffer.len(), root, &reduction);
        let start = call.map(|call| self.start_in_place(call, buffer.target()));
        Request::new(self, buffer, start)
    }

    /// Starts an [`all_gather_into`](Self::all_gather_into).
    pub fn start_all_gather<T: Element>(
        &self,
        source: Buffer<T>,
        mut destination: Buffer<T>,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.all_gather_call::<T>(source.len());
        let start = call.and_then(|call| self.start_into(call, &source, destination.target()));
        Request::new(self, (source, destination), start)
    }

    /// Starts a [`gather_into`](Self::gather_into). Elsewhere than at the root `destination` should be empty.
    pub fn start_gather<T: Element>(
        &self,
        source: Buffer<T>,
        mut destination: Buffer<T>,
        root: Rank,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.gather_call::<T>(source.len(), root);
        let start = call.and_then(|call| self.start_into(call, &source, destination.target()));
        Request::new(self, (source, destination), start)
    }

    /// Starts a [`reduce_scatter_into`](Self::reduce_scatter_into).
    pub fn start_reduce_scatter<T: Element, R: Reduction<T>>(
        &self,
        source: Buffer<T>,
        mut destination: Buffer<T>,
        reduction: R,
    ) -> Request<(Buffer<T>, Buffer<T>)> {
        let call = self.reduce_scatter_call(destination.len(), &reduction);
        let start = call.and_then(|call| self.start_into(call, &source, destination.target()));
        Request::new(self, (source, destination), start)
    }
}
