//! MPI's windows, for which `rsmpi` has nothing.

use crate::value::Value;
use mpi::collective::SystemOperation;
use mpi::ffi;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{AsRaw, Equivalence};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// MPICH 4.0.2 finds the parts of other ranks at wrong addresses unless all have whole pages.
const PAGE: usize = 4096;

/// A window whose memory MPI has allocated. What is passed to its calls is kept, and not looked at, until the next
/// fence, flush or end of a lock.
pub(crate) struct Theirs<T> {
    window: ffi::MPI_Win,
    memory: *mut T,
    count: usize,
    values: PhantomData<T>,
}

impl<T: Value> Theirs<T> {
    /// All ranks call it, each with as many values.
    pub(crate) fn new(communicator: &SimpleCommunicator, values: &[T]) -> Self {
        let (mut window, mut memory) = (MaybeUninit::uninit(), std::ptr::null_mut::<T>());
        // SAFETY: MPI stores both results before it returns; errors end the process.
        unsafe {
            ffi::MPI_Win_allocate(
                size_of_val(values).next_multiple_of(PAGE) as ffi::MPI_Aint,
                size_of::<T>() as c_int,
                ffi::RSMPI_INFO_NULL,
                communicator.as_raw(),
                (&raw mut memory).cast(),
                window.as_mut_ptr(),
            );
        }
        // SAFETY: MPI allocated memory for so many values, and no other rank reaches for it before the first fence.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), memory, values.len()) };
        // SAFETY: stored above.
        let window = unsafe { window.assume_init() };
        Self { window, memory, count: values.len(), values: PhantomData }
    }

    pub(crate) fn fence(&self) {
        // SAFETY: the window is there until `free`.
        unsafe { ffi::MPI_Win_fence(0, self.window) };
    }

    /// Begins an epoch in which no other rank has the lock of `rank`.
    pub(crate) fn lock(&self, rank: usize) {
        // SAFETY: the window is there until `free`, and no lock of this rank is held: `unlock` follows each time.
        unsafe { ffi::MPI_Win_lock(ffi::MPI_LOCK_EXCLUSIVE as c_int, rank as c_int, 0, self.window) };
    }

    /// What was passed since `lock` has been carried out, and is looked at no more.
    pub(crate) fn unlock(&self, rank: usize) {
        // SAFETY: as in `lock`.
        unsafe { ffi::MPI_Win_unlock(rank as c_int, self.window) };
    }

    /// Begins an epoch that it shares with all ranks, on all parts.
    pub(crate) fn lock_all(&self) {
        // SAFETY: as in `lock`; `unlock_all` follows.
        unsafe { ffi::MPI_Win_lock_all(0, self.window) };
    }

    pub(crate) fn unlock_all(&self) {
        // SAFETY: as in `lock`.
        unsafe { ffi::MPI_Win_unlock_all(self.window) };
    }

    /// What was passed for `rank` has been carried out, and is looked at no more; the epoch goes on.
    pub(crate) fn flush(&self, rank: usize) {
        // SAFETY: as in `lock`.
        unsafe { ffi::MPI_Win_flush(rank as c_int, self.window) };
    }

    pub(crate) fn put(&self, rank: usize, offset: usize, values: &[T]) {
        let (rank, offset, count, kind) = place::<T>(rank, offset, values.len());
        // SAFETY: all operations name values that the caller keeps until the next fence, and elements that the window has.
        unsafe { ffi::MPI_Put(values.as_ptr().cast(), count, kind, rank, offset, count, kind, self.window) };
    }

    pub(crate) fn get(&self, rank: usize, offset: usize, values: &mut [T]) {
        let (rank, offset, count, kind) = place::<T>(rank, offset, values.len());
        // SAFETY: as in `put`.
        unsafe {
            ffi::MPI_Get(values.as_mut_ptr().cast(), count, kind, rank, offset, count, kind, self.window)
        };
    }

    pub(crate) fn accumulate(&self, rank: usize, offset: usize, values: &[T], operation: &SystemOperation) {
        let (rank, offset, count, kind) = place::<T>(rank, offset, values.len());
        let (values, operation) = (values.as_ptr().cast(), operation.as_raw());
        // SAFETY: as in `put`.
        unsafe {
            ffi::MPI_Accumulate(values, count, kind, rank, offset, count, kind, operation, self.window)
        };
    }

    pub(crate) fn fetch_and_op(
        &self,
        rank: usize,
        offset: usize,
        value: &T,
        operation: &SystemOperation,
        before: &mut [T],
    ) {
        let (rank, offset, _, kind) = place::<T>(rank, offset, 1);
        let (before, operation) = (before.as_mut_ptr().cast(), operation.as_raw());
        let value = std::ptr::from_ref(value).cast();
        // SAFETY: as in `put`.
        unsafe { ffi::MPI_Fetch_and_op(value, before, kind, rank, offset, operation, self.window) };
    }

    pub(crate) fn compare_and_swap(
        &self,
        rank: usize,
        offset: usize,
        comparand: &T,
        value: &T,
        before: &mut [T],
    ) {
        let (rank, offset, _, kind) = place::<T>(rank, offset, 1);
        let before = before.as_mut_ptr().cast();
        let (value, comparand) = (std::ptr::from_ref(value).cast(), std::ptr::from_ref(comparand).cast());
        // SAFETY: as in `put`.
        unsafe { ffi::MPI_Compare_and_swap(value, comparand, before, kind, rank, offset, self.window) };
    }

    /// What this rank's part holds, after a fence.
    pub(crate) fn memory(&mut self) -> Vec<T> {
        // SAFETY: MPI allocated so many values, and no rank reaches for them between a fence and the next access.
        unsafe { std::slice::from_raw_parts(self.memory, self.count) }.to_vec()
    }

    /// All ranks call it.
    pub(crate) fn free(mut self) {
        // SAFETY: made by `new` and freed once.
        unsafe { ffi::MPI_Win_free(&raw mut self.window) };
    }
}

fn place<T: Equivalence>(
    rank: usize,
    offset: usize,
    count: usize,
) -> (c_int, ffi::MPI_Aint, c_int, ffi::MPI_Datatype) {
    (rank as c_int, offset as ffi::MPI_Aint, count as c_int, T::equivalent_datatype().as_raw())
}
