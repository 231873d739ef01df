//! Operations that go on while the program does something else.
//!
//! An owned [`Request`] takes its buffer along and is a future that borrows nothing: any executor may run it, and
//! dropping it lets the operation complete by itself. A [`Scope`] lends borrowed slices to operations and waits for all
//! of them before it ends, so that leaking a request leaks nothing else.

use crate::buffer::{Buffer, Span};
use crate::communicator::Communicator;
use crate::engine::{Key, Work};
use crate::job::Job;
use crate::{Element, Error, Reduction, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An operation under way that owns its buffer. Resolves to the buffer and how the operation ended.
///
/// Dropped, it is detached: the operation still completes, then its memory is freed.
#[must_use = "a request that is dropped completes, but nobody gets the result"]
pub struct Request<T: Element> {
    job: Arc<Job>,
    key: Key,
    buffer: Option<Buffer<T>>,
}

impl<T: Element> Request<T> {
    /// Waits, turning the crank meanwhile.
    pub fn wait(mut self) -> (Buffer<T>, Result<()>) {
        let result = self.job.shared().wait(self.key).map(drop);
        self.hand_back(result)
    }

    /// Whether it has ended: the next [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn test(&self) -> bool {
        self.job.shared().test(self.key)
    }

    fn hand_back(&mut self, result: Result<()>) -> (Buffer<T>, Result<()>) {
        match self.buffer.take() {
            Some(buffer) => (buffer, result),
            // Polled again after it was ready.
            None => (Buffer::empty(), Err(Error::Misuse("the request has ended already".into()))),
        }
    }
}

impl<T: Element> Future for Request<T> {
    type Output = (Buffer<T>, Result<()>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.buffer.is_none() {
            return Poll::Ready(self.hand_back(Ok(())));
        }
        match self.job.shared().poll(self.key, context.waker()) {
            Some(result) => Poll::Ready(self.hand_back(result.map(drop))),
            None => Poll::Pending,
        }
    }
}

impl<T: Element> Unpin for Request<T> {}

impl<T: Element> Drop for Request<T> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.job.shared().detach(self.key, Box::new(buffer));
        }
    }
}

impl<T: Element> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Communicator {
    /// Starts an [`all_reduce`](Self::all_reduce) of a buffer that is handed back with the result. All ranks start it
    /// at the same place among their calls.
    pub fn start_all_reduce<T: Element, R: Reduction<T>>(
        &self,
        mut buffer: Buffer<T>,
        reduction: R,
    ) -> Request<T> {
        let span = buffer.span();
        let key = self.start(span, buffer.len(), &reduction);
        Request { job: self.job().clone(), key, buffer: Some(buffer) }
    }

    /// Runs `program` with a scope in which operations on borrowed slices can be started; returns once all of them have
    /// ended.
    ///
    /// # Errors
    ///
    /// The first error of an operation that `program` did not wait for.
    pub fn scope<'env, R>(
        &'env self,
        program: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        let scope =
            Scope { communicator: self, open: RefCell::default(), scope: PhantomData, env: PhantomData };
        // Also when `program` panics: the drop of the guard waits.
        let guard = Guard(&scope);
        let result = program(&scope);
        std::mem::forget(guard);
        scope.wait_all().map(|()| result)
    }

    fn start<T: Element, R: Reduction<T>>(&self, span: Span, count: usize, reduction: &R) -> Key {
        let (begin, job) = self.planned_all_reduce::<T, R>(span, count, reduction);
        let key = self.job().shared().begin(begin, Work::Planned(job));
        self.job().shared().nudge();
        key
    }
}

struct Guard<'a, 'scope, 'env>(&'a Scope<'scope, 'env>);

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        // The panic is the news; how the operations end is not.
        let _ = self.0.wait_all();
    }
}

/// Lends slices to operations until it ends; made by [`Communicator::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    communicator: &'env Communicator,
    open: RefCell<BTreeMap<Key, ()>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts an [`all_reduce`](Communicator::all_reduce) of a borrowed slice.
    pub fn all_reduce<T: Element, R: Reduction<T>>(
        &'scope self,
        values: &'scope mut [T],
        reduction: R,
    ) -> ScopedRequest<'scope, T> {
        let lent = crate::buffer::Lent::new(values);
        let key = self.communicator.start::<T, R>(lent.span(), lent.len(), &reduction);
        self.open.borrow_mut().insert(key, ());
        ScopedRequest { wait: Box::new(move || self.wait(key)), lent }
    }

    fn wait(&self, key: Key) -> Result<()> {
        self.open.borrow_mut().remove(&key);
        self.communicator.job().shared().wait(key).map(drop)
    }

    /// Waits for all operations that were not waited for; the first error.
    fn wait_all(&self) -> Result<()> {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        let results: Vec<Result<()>> =
            open.into_keys().map(|key| self.communicator.job().shared().wait(key).map(drop)).collect();
        results.into_iter().collect()
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("open", &self.open).finish_non_exhaustive()
    }
}

/// An operation on a borrowed slice.
#[must_use = "the scope waits for it, but only `wait` gives the slice back before"]
pub struct ScopedRequest<'scope, T> {
    wait: Box<dyn FnOnce() -> Result<()> + 'scope>,
    lent: crate::buffer::Lent<'scope, T>,
}

impl<'scope, T> ScopedRequest<'scope, T> {
    /// Waits; the slice comes back however the operation ended.
    pub fn wait(self) -> (&'scope mut [T], Result<()>) {
        let result = (self.wait)();
        (self.lent.give_back(), result)
    }
}

impl<T> fmt::Debug for ScopedRequest<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedRequest").finish_non_exhaustive()
    }
}
