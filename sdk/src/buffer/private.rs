//! Memory of the library's own, read and written through a span.

use super::Span;
use std::ptr::NonNull;

/// A few bytes kept aside for an operation, aligned for any element.
#[derive(Debug)]
pub(crate) struct Private {
    words: Vec<u64>,
    len: usize,
}

impl Private {
    /// A copy of bytes that have arrived.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut private = Self { words: vec![0; bytes.len().div_ceil(size_of::<u64>())], len: bytes.len() };
        private.span().write(bytes);
        private
    }

    /// The bytes, for as long as `self` lives and is not moved from.
    pub(crate) fn span(&mut self) -> Span {
        match NonNull::new(self.words.as_mut_ptr()) {
            // SAFETY: the vector holds at least `len` bytes and is neither grown nor touched otherwise; callers keep spans
            // beside the owner inside one operation, and drop both together.
            Some(address) => unsafe { Span::new(address.cast(), self.len) },
            None => Span::EMPTY,
        }
    }

    /// Copies the bytes out.
    pub(crate) fn copy_to(&mut self, bytes: &mut [u8]) {
        let span = self.span();
        // SAFETY: `bytes` is borrowed mutably for this call, and the span made of it is used for nothing else.
        unsafe { Span::of_slice(bytes) }.copy_from(span);
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
