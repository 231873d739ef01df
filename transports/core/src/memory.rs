//! Memory as a transport is told of it.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;

/// Memory that the caller wants registered. Making one is where the promises are made, so that transports
/// need no `unsafe` to take it.
#[derive(Debug)]
pub struct Memory {
    kind: MemoryKind,
}

/// What kind of memory it is, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Ordinary memory of this process.
    Host {
        /// The first byte.
        address: NonNull<u8>,
        /// Bytes.
        len: usize,
    },
}

impl Memory {
    /// Ordinary memory of this process: `len` bytes from `address` on.
    ///
    /// # Safety
    ///
    /// From now on, and until every region that a transport made of it is deregistered or that transport dropped:
    ///
    /// - the memory is valid for reads and writes from any thread, and initialised;
    /// - no reference is alive to bytes that an operation under way covers or that a peer may write;
    /// - while a method of such a transport runs, no other thread accesses these bytes, save to read those that the
    ///   transport only reads.
    #[must_use]
    pub const unsafe fn host(address: NonNull<u8>, len: usize) -> Self {
        Self { kind: MemoryKind::Host { address, len } }
    }

    /// What and where it is.
    #[must_use]
    pub const fn kind(&self) -> MemoryKind {
        self.kind
    }
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

    /// The first byte. Whoever reads or writes there keeps the last two promises of [`Memory::host`].
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
