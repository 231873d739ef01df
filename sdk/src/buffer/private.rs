//! Memory of the library's own, read and written through a span.

use super::Span;
use crate::{Error, Result};
use std::ops::Range;
use std::ptr::NonNull;

/// A few bytes kept aside for an operation.
#[derive(Debug, Default)]
pub(crate) struct Private(Vec<u8>);

impl Private {
    /// Zeros.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self(vec![0; len])
    }

    /// Zeros, of a length that other ranks have a say in.
    pub(crate) fn try_zeroed(len: usize) -> Result<Self> {
        // What can be reserved can be had zeroed, without touching all of it.
        match Vec::<u8>::new().try_reserve_exact(len) {
            Ok(()) => Ok(Self::zeroed(len)),
            Err(error) => Err(Error::System(format!("there is no memory for {len} bytes: {error}").into())),
        }
    }

    /// A copy of bytes that have arrived.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Makes it another length. What is in it then is not said.
    pub(crate) fn resize(&mut self, len: usize) {
        self.0.resize(len, 0);
    }

    /// The bytes, for as long as `self` lives and is not moved from.
    pub(crate) fn span(&mut self) -> Span {
        match NonNull::new(self.0.as_mut_ptr()) {
            // SAFETY: the vector holds `len` bytes and is neither grown nor touched otherwise; callers keep spans beside the
            // owner inside one operation, and drop both together.
            Some(address) => unsafe { Span::new(address, self.0.len()) },
            None => Span::EMPTY,
        }
    }

    /// A copy of a part of the bytes; none where there is no such part.
    pub(crate) fn copy_out(&self, part: Range<usize>) -> Vec<u8> {
        self.0.get(part).unwrap_or_default().to_vec()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<Vec<u8>> for Private {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<Private> for Vec<u8> {
    fn from(private: Private) -> Self {
        private.0
    }
}
