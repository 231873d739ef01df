//! Memory of the library's own, and what the provider knows of it.

use crate::domain::Domain;
use crate::handle::Handle;
use crate::sys::{FI_MR_VIRT_ADDR, fid_mr};
use gradwire_transport::{Allocation, RegisterError};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Zeroed pages, unmapped on drop. It only tells its address; whoever uses that says why it may.
#[derive(Debug)]
pub(crate) struct Block {
    address: NonNull<u8>,
    len: usize,
    mapped: usize,
}

impl Block {
    /// `len` zeroed bytes at a page boundary.
    pub(crate) fn zeroed(len: usize) -> Result<Self, RegisterError> {
        let limit = RegisterError::Limit { limit: isize::MAX as usize };
        let mapped = len.max(1).checked_next_multiple_of(4096).ok_or(limit.clone())?;
        if isize::try_from(mapped).is_err() {
            return Err(limit);
        }
        // SAFETY: a new mapping at an address of the system's choice touches no memory that is in use (mmap(2)).
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let refused = |code| RegisterError::System { context: "allocate memory", code };
        let start = start.map_err(|errno| refused(errno.raw_os_error()))?;
        let address = NonNull::new(start.cast()).ok_or(refused(0))?;
        Ok(Self { address, len, mapped })
    }

    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and is unmapped once. Whoever has its address keeps the block: allocations their
        // `Arc`, the provider by way of `Memory`.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.mapped) };
    }
}

// SAFETY: the block owns its mapping, which is not tied to a thread; all it does with it is to unmap it.
unsafe impl Send for Block {}
// SAFETY: a shared block only tells an address and a length.
unsafe impl Sync for Block {}

/// What the caller gets of a block: it lives as long as this, or as the provider needs it.
pub(crate) fn allocation(block: Arc<Block>) -> Allocation {
    let (address, len) = (block.address(), block.len());
    // SAFETY: the block is a mapping of at least `len` zeroed bytes at a page boundary while any `Arc` of it lives; besides
    // the holder only the transport, for which this is made, and its provider use it.
    unsafe { Allocation::new(address, len, Box::new(block)) }
}

/// A block that the provider may read and write: it is kept, and its registration, until no operation uses it.
#[derive(Debug)]
pub(crate) struct Memory {
    /// `None`: the provider needs none, as peers cannot reach this.
    registration: Option<Handle<fid_mr>>,
    block: Option<Arc<Block>>,
    address: NonNull<u8>,
    len: usize,
    domain: Arc<Domain>,
}

impl Memory {
    pub(crate) fn new(block: Arc<Block>, registration: Option<Handle<fid_mr>>, domain: Arc<Domain>) -> Self {
        Self { registration, address: block.address(), len: block.len(), block: Some(block), domain }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What peers show to reach it.
    pub(crate) fn key(&self) -> Option<u64> {
        self.registration.as_ref().map(|registration| registration.get().key)
    }

    /// What peers call its first byte.
    pub(crate) fn remote_address(&self) -> u64 {
        let is_virtual = self.domain.traits().mr_mode & FI_MR_VIRT_ADDR != 0;
        if is_virtual { self.address.as_ptr().expose_provenance() as u64 } else { 0 }
    }

    /// What local operations show.
    pub(crate) fn descriptor(&self) -> *mut c_void {
        self.registration.as_ref().map_or(ptr::null_mut(), |registration| registration.get().mem_desc)
    }

    /// A part of it; `None` when it has no such part.
    pub(crate) fn piece(self: &Arc<Self>, offset: usize, len: usize) -> Option<Piece> {
        let fits = offset <= self.len && len <= self.len - offset;
        fits.then(|| Piece { memory: self.clone(), offset, len })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // What the provider may still use is better lost than shared with whoever gets it next.
        let is_free = match self.registration.take() {
            registration if self.domain.is_stuck() => {
                std::mem::forget(registration);
                false
            }
            registration => registration.is_none_or(|registration| registration.close().is_ok()),
        };
        if !is_free {
            std::mem::forget(self.block.take());
        }
    }
}

// SAFETY: the registration is an object of the library tied to no thread, and the address is used through `Piece` only.
unsafe impl Send for Memory {}
// SAFETY: as above; calls on the registration are made by the holder of the domain only.
unsafe impl Sync for Memory {}

/// A part of a memory that an operation reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    memory: Arc<Memory>,
    offset: usize,
    len: usize,
}

impl Piece {
    pub(crate) fn address(&self) -> NonNull<u8> {
        // SAFETY: `Memory::piece` checked that the offset is not beyond the end of the mapping.
        unsafe { self.memory.address.add(self.offset) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn descriptor(&self) -> *mut c_void {
        self.memory.descriptor()
    }

    /// Its first bytes become those from `source` on.
    ///
    /// # Safety
    ///
    /// `source` is valid for reads of `len` bytes, and none of them lies in this piece.
    pub(crate) unsafe fn fill_from(&self, source: *const u8, len: usize) {
        assert!(len <= self.len, "more bytes than the piece has");
        // SAFETY: the caller answers for the source; the target is `len` bytes of a mapping that lives. Nobody holds a
        // reference to them: memory is only reached through pieces, by the one thread that drives the transport.
        unsafe { ptr::copy_nonoverlapping(source, self.address().as_ptr(), len) };
    }

    /// Its first bytes are copied to `target`.
    ///
    /// # Safety
    ///
    /// `target` is valid for writes of `len` bytes, and none of them lies in this piece.
    pub(crate) unsafe fn copy_to(&self, target: *mut u8, len: usize) {
        assert!(len <= self.len, "more bytes than the piece has");
        // SAFETY: as in `fill_from`, the other way round; mapped bytes are initialised.
        unsafe { ptr::copy_nonoverlapping(self.address().as_ptr(), target, len) };
    }

    /// Its first bytes become these.
    pub(crate) fn write(&self, bytes: &[u8]) {
        // SAFETY: a slice of safe code cannot lie in memory that only pieces reach.
        unsafe { self.fill_from(bytes.as_ptr(), bytes.len()) };
    }

    /// The bytes from `offset` on become these.
    pub(crate) fn write_at(&self, offset: usize, bytes: &[u8]) {
        let rest =
            self.len.checked_sub(offset).and_then(|rest| self.memory.piece(self.offset + offset, rest));
        rest.expect("an offset inside the piece").write(bytes);
    }

    /// Its first bytes.
    pub(crate) fn read(&self, bytes: &mut [u8]) {
        // SAFETY: as in `write`.
        unsafe { self.copy_to(bytes.as_mut_ptr(), bytes.len()) };
    }
}

// SAFETY: it is a shared `Memory` and two numbers.
unsafe impl Send for Piece {}
