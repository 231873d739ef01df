//! Requests that own their memory.

use super::{Conclusion, Operation};
use crate::Result;
use crate::communicator::{Communicator, Start};
use crate::job::Job;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An operation under way that owns its memory `M`: a [`Buffer`](crate::Buffer), two of them, a
/// struct of tensors, or nothing. Resolves to the memory and how
/// the operation ended.
///
/// Dropped, it is detached: the operation still completes, then its memory is freed.
#[must_use = "a request that is dropped completes, but nobody gets the result"]
pub struct Request<M: Send + 'static, R: 'static = ()> {
    job: Arc<Job>,
    /// There until it has ended.
    held: Option<(M, Operation<M, R>)>,
}

impl<M: Send + 'static, R: 'static> Request<M, R> {
    /// Starts an operation on `memory`, which must be where `start` says that it is.
    pub(crate) fn new(communicator: &Communicator, memory: M, start: Result<Start<R>>) -> Self {
        let operation = Operation::start(communicator.job(), start);
        Self::of(communicator, memory, operation)
    }

    pub(super) fn of(communicator: &Communicator, memory: M, operation: Operation<M, R>) -> Self {
        Self { job: communicator.job().clone(), held: Some((memory, operation)) }
    }

    /// Waits, turning the crank meanwhile.
    ///
    /// # Panics
    ///
    /// When it has been polled to its end: its memory is gone.
    pub fn wait(mut self) -> (M, Result<R>) {
        let Some((mut memory, operation)) = self.held.take() else { over() };
        let result = operation.wait(&self.job, &mut memory);
        (memory, result)
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

/// As every future may, it panics when it is polled again after it was ready: there is no memory to give back any more.
fn over() -> ! {
    panic!("the request has ended already, and given its memory back");
}

impl<M: Send + 'static, R: 'static> Future for Request<M, R> {
    type Output = (M, Result<R>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((mut memory, operation)) = self.held.take() else { over() };
        match operation {
            Operation::Refused(error) => Poll::Ready((memory, Err(error))),
            Operation::UnderWay(key, conclusion) => match self.job.shared().poll(key, context.waker()) {
                Some(outcome) => {
                    let result = conclusion.conclude(&mut memory, outcome);
                    Poll::Ready((memory, result))
                }
                None => {
                    self.held = Some((memory, Operation::UnderWay(key, conclusion)));
                    Poll::Pending
                }
            },
        }
    }
}

impl<M: Send + 'static, R: 'static> Unpin for Request<M, R> {}

impl<M: Send + 'static, R: 'static> Drop for Request<M, R> {
    fn drop(&mut self) {
        match self.held.take() {
            Some((memory, Operation::UnderWay(key, Conclusion::Apart(conclude)))) => {
                self.job.shared().detach(key, Box::new((memory, conclude)));
            }
            // Nothing of the memory is in use: it is dropped here.
            Some((_, Operation::UnderWay(key, Conclusion::Within(conclude)))) => {
                self.job.shared().detach(key, Box::new(conclude));
            }
            Some((_, Operation::Refused(_))) | None => {}
        }
    }
}

impl<M: Send + 'static, R: 'static> fmt::Debug for Request<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", &self.key()).finish_non_exhaustive()
    }
}
