//! A caller's memory, lent to an operation for the length of a blocking call.

use super::Span;
use crate::Result;
use crate::driver::Shared;
use crate::engine::{Begin, Key, Outcome, Work};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Starts the operation that `work` makes of the memory, and waits until it has ended.
pub(crate) fn lend(
    shared: &Shared,
    begin: Begin,
    bytes: &mut [u8],
    work: impl FnOnce(Span) -> Work,
) -> Result<Outcome> {
    // SAFETY: the span goes into the operation started here and nowhere else (the engine's work holds it by value and
    // drops it with the operation). The operation has ended when this function returns: it is waited for, and cancelled
    // by the guard if waiting unwinds. Until then `bytes` stays borrowed and is not used.
    let span = unsafe { Span::of_slice(bytes) };
    let guard = Guard { shared, key: shared.begin(begin, work(span)) };
    let result = shared.wait(guard.key);
    std::mem::forget(guard);
    result
}

struct Guard<'a> {
    shared: &'a Shared,
    key: Key,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.shared.cancel(self.key);
    }
}

/// A slice lent to an operation of a scope.
pub(crate) struct Lent<'scope, T> {
    span: Span,
    slice: NonNull<[T]>,
    borrow: PhantomData<&'scope mut [T]>,
}

impl<'scope, T> Lent<'scope, T> {
    pub(crate) fn new(slice: &'scope mut [T]) -> Self {
        // SAFETY: the borrow lasts as long as `'scope`, and the scope waits for the operation before that ends. Until
        // `give_back`, which the scope calls after it has waited, nobody uses the slice.
        let span = unsafe { Span::of_slice(&mut *slice) };
        Self { span, slice: NonNull::from(slice), borrow: PhantomData }
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn len(&self) -> usize {
        self.slice.len()
    }

    /// The slice, after the operation.
    pub(crate) fn give_back(mut self) -> &'scope mut [T] {
        // SAFETY: made of a unique borrow that lasts as long as `'scope`, of which this is the only copy; the operation has
        // ended.
        unsafe { self.slice.as_mut() }
    }
}
