//! Operations on borrowed slices, within a scope that outlasts them.

use super::Operation;
use crate::buffer::{Lent, Target};
use crate::communicator::{Communicator, Start};
use crate::engine::Key;
use crate::job::Job;
use crate::{Equivalence, Error, Result};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

impl Communicator {
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
        let scope = Scope {
            communicator: self,
            open: RefCell::default(),
            started: Cell::default(),
            scope: PhantomData,
            env: PhantomData,
        };
        // Also when `program` panics: the drop of the guard waits.
        let guard = Guard(&scope);
        let result = program(&scope);
        let ended = scope.wait_all();
        std::mem::forget(guard);
        ended.map(|()| result)
    }
}

/// How the operations are concluded that nobody has waited for, by the number of their start.
type Open = RefCell<BTreeMap<u64, Box<dyn FnOnce(&Job) -> Result<()>>>>;

struct Guard<'a, 'scope, 'env>(&'a Scope<'scope, 'env>);

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        // The panic is the news; how the operations end is not.
        let _ = self.0.wait_all();
    }
}

/// Lends slices to operations until it ends; made by [`Communicator::scope`].
///
/// Each method is the call of the [`Communicator`] that has its name; a call that makes no sense is told by its request.
/// All ranks start a call at the same place among their calls.
pub struct Scope<'scope, 'env: 'scope> {
    pub(super) communicator: &'env Communicator,
    open: Open,
    /// How many operations have been started.
    started: Cell<u64>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts an operation on lent values.
    pub(crate) fn lend<T: Equivalence, R: 'static>(
        &'scope self,
        values: &'scope mut [T],
        start: impl FnOnce(&Communicator, Target<[T]>) -> Result<Start<R>>,
    ) -> ScopedRequest<'scope, &'scope mut [T], R> {
        let (lent, target) = Lent::new(values);
        self.open(|| lent.give_back(), start(self.communicator, target))
    }

    /// Starts an operation, and keeps it until somebody waits for it.
    pub(crate) fn open<M, R: 'static>(
        &'scope self,
        give_back: impl FnOnce() -> M + 'scope,
        start: Result<Start<R>>,
    ) -> ScopedRequest<'scope, M, R> {
        self.keep((), give_back, Operation::start(self.communicator.job(), start))
    }

    /// Keeps an operation until somebody waits for it; it is concluded in `memory`.
    pub(super) fn keep<N: 'static, M, R: 'static>(
        &'scope self,
        mut memory: N,
        give_back: impl FnOnce() -> M + 'scope,
        operation: Operation<N, R>,
    ) -> ScopedRequest<'scope, M, R> {
        let key = operation.key();
        let result = Rc::new(Cell::new(None));
        let place = result.clone();
        let conclude = move |job: &Job| operation.wait(job, &mut memory).map(|value| place.set(Some(value)));
        let number = self.started.replace(self.started.get() + 1);
        self.open.borrow_mut().insert(number, Box::new(conclude));
        ScopedRequest {
            communicator: self.communicator,
            open: &self.open,
            number,
            key,
            result,
            give_back: Box::new(give_back),
        }
    }

    /// Waits for all operations that were not waited for; the first error.
    fn wait_all(&self) -> Result<()> {
        let mut all = Ok(());
        // Taken out one by one: should one panic when it is concluded the others are still there to be waited for.
        let next = || self.open.borrow_mut().pop_first();
        while let Some((_, conclude)) = next() {
            all = all.and(conclude(self.communicator.job()));
        }
        all
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("open", &self.open.borrow().len()).finish_non_exhaustive()
    }
}

/// An operation on a borrowed slice; `M` is what comes back.
#[must_use = "the scope waits for it, but only `wait` gives the slice back before"]
pub struct ScopedRequest<'scope, M, R = ()> {
    communicator: &'scope Communicator,
    open: &'scope Open,
    number: u64,
    key: Option<Key>,
    result: Rc<Cell<Option<R>>>,
    give_back: Box<dyn FnOnce() -> M + 'scope>,
}

impl<M, R> ScopedRequest<'_, M, R> {
    /// Waits; the slice comes back however the operation ended.
    pub fn wait(self) -> (M, Result<R>) {
        let conclude = self.open.borrow_mut().remove(&self.number);
        let ended = conclude.map(|conclude| conclude(self.communicator.job()));
        let bug = || Error::Bug("a request ended without a result".into());
        let result = ended.unwrap_or_else(|| Err(bug())).and_then(|()| self.result.take().ok_or_else(bug));
        ((self.give_back)(), result)
    }

    /// Whether it has ended: the next [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn test(&self) -> bool {
        self.key.is_none_or(|key| self.communicator.job().shared().test(key))
    }
}

impl<M, R> fmt::Debug for ScopedRequest<'_, M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedRequest").field("key", &self.key).finish_non_exhaustive()
    }
}
