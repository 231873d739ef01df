//! A caller's memory, lent to an operation for the length of a blocking call.

use super::Span;
use crate::Result;
use crate::driver::Shared;
use crate::engine::{Begin, GroupId, Head, Key, Outcome, Pattern, Work};
use gradwire_schema::Equivalence;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Starts the operation that `work` makes of the memory, waits until it has ended, and lets `conclude` finish it.
pub(crate) fn lend<R>(
    shared: &Shared,
    begin: Begin,
    bytes: &mut [u8],
    work: impl FnOnce(Span) -> Work,
    conclude: impl FnOnce(Outcome, Span) -> R,
) -> Result<R> {
    // SAFETY: the span goes into the operation started here and nowhere else (the engine's work holds it by value and
    // drops it with the operation). The operation has ended when this function returns: it is waited for, and cancelled
    // by the guard if waiting unwinds. Until then `bytes` stays borrowed and is not used.
    let span = unsafe { Span::of_slice(bytes) };
    let guard = Guard { shared, key: shared.begin(begin, work(span)) };
    let result = shared.wait(guard.key);
    std::mem::forget(guard);
    Ok(conclude(result?, span))
}

/// As [`lend`], of memory that the operation only reads.
pub(crate) fn lend_shared(
    shared: &Shared,
    begin: Begin,
    bytes: &[u8],
    work: impl FnOnce(Span) -> Work,
) -> Result<Outcome> {
    // SAFETY: as in `lend`; meanwhile others may read `bytes`, and so does the operation: it is a send, which copies out of
    // its span or registers it as a source.
    let span = unsafe { Span::of_shared(bytes) };
    let guard = Guard { shared, key: shared.begin(begin, work(span)) };
    let result = shared.wait(guard.key);
    std::mem::forget(guard);
    result
}

/// As [`lend`], but does something else before it waits. When that fails the operation is given up.
pub(crate) fn lend_during(
    shared: &Shared,
    begin: Begin,
    bytes: &mut [u8],
    work: impl FnOnce(Span) -> Work,
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    // SAFETY: as in `lend`: the guard cancels the operation if `meanwhile` fails or unwinds.
    let span = unsafe { Span::of_slice(bytes) };
    let guard = Guard { shared, key: shared.begin(begin, work(span)) };
    meanwhile()?;
    let result = shared.wait(guard.key);
    std::mem::forget(guard);
    result
}

/// Receives a short message into memory, if it is here or comes soon; `None`: an operation is needed.
pub(crate) fn lend_briefly(
    shared: &Shared,
    id: GroupId,
    pattern: Pattern,
    kind: u64,
    bytes: &mut [u8],
) -> Option<Head> {
    // SAFETY: once `receive_briefly` has returned or unwound nobody uses the span; until then `bytes` stays borrowed and is
    // not used.
    let span = unsafe { Span::of_slice(bytes) };
    shared.receive_briefly(id, pattern, kind, span)
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

/// Values that a request works on, `[T]`, or whatever else it changes: written while the operation is under way, and once
/// more when it is concluded.
///
/// Whoever makes one promises that the values stay where they are, and that no reference to them is used, until the
/// operation has ended and was concluded.
#[derive(Debug)]
pub(crate) struct Target<T: ?Sized>(NonNull<T>);

// SAFETY: a target is an address; by the contract of `new` only the operation it was made for uses the values, on
// whichever thread concludes it, and the values may go to any thread.
unsafe impl<T: ?Sized + Send> Send for Target<T> {}

impl<T: ?Sized> Target<T> {
    /// Values for an operation.
    ///
    /// # Safety
    ///
    /// Until the operation has ended and was concluded, or was given up before it began, the values live and no
    /// reference to them is used.
    pub(super) unsafe fn new(values: &mut T) -> Self {
        Self(NonNull::from(values))
    }

    /// Uses the values, before the operation begins or after it has ended.
    pub(crate) fn with<R>(&mut self, use_them: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: by the contract of `new` the values live and nobody else uses them; the engine does not, for the
        // operation is not under way.
        use_them(unsafe { self.0.as_mut() })
    }
}

impl<T: Equivalence> Target<[T]> {
    /// The values' memory, where that is their packed form.
    pub(crate) fn bytes(&mut self) -> Option<Span> {
        self.with(|values| {
            let len = values.len() * T::PACKED_SIZE;
            let bytes = T::as_bytes_mut(values).filter(|bytes| bytes.len() == len)?;
            // SAFETY: the span is used by the operation that the target was made for, to whose values the contract of
            // `new` applies.
            Some(unsafe { Span::of_slice(bytes) })
        })
    }
}

/// The memory of values that an operation of a scope only reads, where that is their packed form.
pub(crate) fn lend_to_scope<'scope, T: Equivalence>(values: &'scope [T]) -> Option<Span> {
    let len = values.len() * T::PACKED_SIZE;
    let bytes: &'scope [u8] = T::as_bytes(values).filter(|bytes| bytes.len() == len)?;
    // SAFETY: the borrow lasts as long as `'scope`, and the scope concludes the operation before that ends. Meanwhile
    // others may read the values, and so does the operation, which is a send.
    Some(unsafe { Span::of_shared(bytes) })
}

/// A slice, or something else, lent to an operation of a scope.
pub(crate) struct Lent<'scope, T: ?Sized> {
    values: NonNull<T>,
    borrow: PhantomData<&'scope mut T>,
}

impl<'scope, T: ?Sized> Lent<'scope, T> {
    pub(crate) fn new(values: &'scope mut T) -> (Self, Target<T>) {
        // SAFETY: the borrow lasts as long as `'scope`, and the scope concludes the operation before that ends. Until
        // `give_back`, which the scope calls after it has concluded it, nobody else uses the values.
        let target = unsafe { Target::new(values) };
        (Self { values: target.0, borrow: PhantomData }, target)
    }

    /// The values, after the operation was concluded.
    pub(crate) fn give_back(mut self) -> &'scope mut T {
        // SAFETY: made of a unique borrow that lasts as long as `'scope`; the target, the only other copy, is gone with the
        // operation.
        unsafe { self.values.as_mut() }
    }
}
