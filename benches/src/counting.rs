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

    /// In shared memory; on the network the engine keeps frames. The first calls meet each kind of wait once: a rank that
    /// sleeps hears the bell, whose events need a place.
    #[test]
    fn a_persistent_call_allocates_nothing_once_it_is_under_way() {
        for len in [2, 1000, 50_000] {
            let program = |comm: gradwire::Communicator| {
                let buffer = comm.allocate::<f32>(len).unwrap();
                let mut step = comm.all_reduce_init(buffer, gradwire::Sum).unwrap();
                let mut calls = |many: usize| {
                    for call in 0..many {
                        step.memory_mut().unwrap().fill(call as f32);
                        if call % 20 == comm.rank() {
                            std::thread::sleep(std::time::Duration::from_millis(3));
                        }
                        step.run().unwrap();
                        assert_eq!(step.memory().unwrap()[len - 1], 2.0 * call as f32);
                    }
                };
                calls(60);
                let ((), allocations) = count(|| calls(60));
                allocations
            };
            assert_eq!(gradwire::run(2, program).unwrap(), [0, 0], "{len} elements");
        }
    }
}
