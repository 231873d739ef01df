//! Memory of the library's own, read and written through a span.

use super::Span;
use crate::{Error, Result};
use std::ops::Range;
use std::ptr::NonNull;

/// A few bytes kept aside for an operation, aligned for any element.
#[derive(Debug)]
pub(crate) struct Private {
    words: Vec<u64>,
    len: usize,
}

impl Private {
    /// Zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(size_of::<u64>())], len }
    }

    /// Zeros, of a length that other ranks have a say in.
    pub(crate) fn try_zeroed(len: usize) -> Result<Self> {
        // What can be reserved can be had zeroed, without touching all of it.
        match Vec::<u64>::new().try_reserve_exact(len.div_ceil(size_of::<u64>())) {
            Ok(()) => Ok(Self::zeroed(len)),
            Err(error) => Err(Error::System(format!("there is no memory for {len} bytes: {error}").into())),
        }
    }

    /// A copy of bytes that have arrived.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut private = Self::zeroed(bytes.len());
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

    /// A copy of a part of the bytes; none where there is no such part.
    pub(crate) fn copy_out(&mut self, part: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.span().part(part).inspect(|part| part.append_to(&mut bytes));
        bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
