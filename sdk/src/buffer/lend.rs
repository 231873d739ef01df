//! A caller's memory, lent to an operation for the length of a blocking call.

use super::Span;
use crate::Result;
use crate::driver::Shared;
use crate::engine::{Begin, Key, Outcome, Work};

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
