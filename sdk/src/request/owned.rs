//! Requests that own their memory.

use super::Operation;
use crate::communicator::{Communicator, Start};
use crate::job::Job;
use crate::{Error, Result};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An operation under way that owns its memory `M`: a [`Buffer`](crate::Buffer), two of them, or nothing. Resolves to the memory and how
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
