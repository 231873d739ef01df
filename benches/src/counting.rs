//! Counts allocations: the allocator of every program that links this crate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Allocations and reallocations of this thread. Needs neither initialising nor dropping, so that the allocator
    /// may use it at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// What `work` returns, and how often it allocated.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let result = work();
    (result, ALLOCATIONS.get() - before)
}

struct Counting;

fn add_one() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: every method hands its arguments to the system's allocator and returns what that returns; counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add_one();
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add_one();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add_one();
        // SAFETY: the caller keeps the contract of `realloc`; the pointer is one that the system's allocator returned.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; the pointer is one that the system's allocator returned.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::count;
    use std::hint::black_box;

    #[test]
    fn counts() {
        assert_eq!(count(|| black_box(Box::new(1))).1, 1);
        assert_eq!(count(|| black_box(vec![0_u64; 100])).1, 1);
        assert_eq!(count(|| black_box([0_u64; 100])).1, 0);
    }
}
