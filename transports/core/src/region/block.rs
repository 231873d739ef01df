//! Zeroed memory at a page boundary.

use crate::RegisterError;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// What [`Allocation`](crate::Allocation) promises of its address.
const PAGE: usize = 4096;
/// Any alignment up to what the system's allocator keeps by itself: then it hands out fresh pages unwritten.
const SYSTEM_ALIGN: usize = 16;
/// `ENOMEM`.
const NO_MEMORY: i32 = 12;

/// Owned memory, freed on drop. It only tells its address; whoever uses that says why it may.
#[derive(Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// At least `len` zeroed bytes from [`address`](Self::address) on.
    pub(super) fn zeroed(len: usize) -> Result<Self, RegisterError> {
        let refused = RegisterError::System { context: "allocate memory", code: NO_MEMORY };
        // A page more than asked for, to have room to start at a boundary: asking the allocator for the boundary
        // would make it write the zeroes, and touch every page.
        let size = len.checked_add(PAGE).ok_or(refused.clone())?;
        let layout = Layout::from_size_align(size, SYSTEM_ALIGN).map_err(|_| refused.clone())?;
        // SAFETY: the size is at least a page, so not zero.
        let start = unsafe { alloc_zeroed(layout) };
        Ok(Self { start: NonNull::new(start).ok_or(refused)?, layout })
    }

    /// The first page boundary.
    pub(super) fn address(&self) -> NonNull<u8> {
        let skip = self.start.as_ptr().addr().wrapping_neg() % PAGE;
        // SAFETY: `skip` is less than a page, and the block is at least a page long.
        unsafe { self.start.add(skip) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from the global allocator with this layout and is freed once, here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

// SAFETY: the block owns its memory, which is not tied to a thread; all it does with it is to free it.
unsafe impl Send for Block {}
// SAFETY: a shared block only tells an address.
unsafe impl Sync for Block {}
