//! Memory as a transport is told of it.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

/// Memory that the caller wants registered.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Memory {
    /// Ordinary memory of this process.
    Host {
        /// The first byte.
        address: NonNull<u8>,
        /// Bytes.
        len: usize,
    },
}

/// Memory that a transport allocated, owned by whoever holds this. It stays mapped after the region is
/// deregistered and after the transport is dropped, until this is dropped.
pub struct Allocation {
    address: NonNull<u8>,
    len: usize,
    _owner: Box<dyn Any + Send + Sync>,
}

impl Allocation {
    /// Memory kept alive by `owner`.
    ///
    /// # Safety
    ///
    /// `address` is valid for reads and writes of `len` bytes, initialised, at a page boundary or dangling when
    /// `len` is 0, for as long as `owner` lives, and nothing in this process but the holder of the
    /// `Allocation` and the transport that made it uses the memory.
    #[must_use]
    pub unsafe fn new(address: NonNull<u8>, len: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { address, len, _owner: owner }
    }

    /// The first byte.
    #[must_use]
    pub fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("address", &self.address)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

// SAFETY: the owner is Send and Sync, and by the contract of `new` the memory has no other user in this process
// than the holder and the transport; dereferencing the address is up to them and is unsafe.
unsafe impl Send for Allocation {}
// SAFETY: as above; a shared `Allocation` only tells its address and length.
unsafe impl Sync for Allocation {}
