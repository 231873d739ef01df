//! Raw memory of an operation.

use gradwire_transport::{Allocation, Memory};
use std::ops::Range;
use std::ptr::NonNull;

/// Memory that an operation reads and writes while it is under way.
///
/// Whoever makes a span promises that the memory stays valid and that no reference to it is used until the
/// operation has ended. With that promise the methods are safe: they check every range, and copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    address: NonNull<u8>,
    len: usize,
}

// SAFETY: a span is an address and a length; by the contract of `new` only the operation it was made for uses the
// memory, whichever thread drives the operation.
unsafe impl Send for Span {}
// SAFETY: as above; the operation is driven by one thread at a time, under the driver's lock.
unsafe impl Sync for Span {}

impl Span {
    /// No memory.
    pub(crate) const EMPTY: Self = Self { address: NonNull::dangling(), len: 0 };

    /// Memory for an operation.
    ///
    /// # Safety
    ///
    /// Until the operation that is given the span (or a part of it) has ended, `address` is valid for reads and writes
    /// of `len` bytes, and no reference to them is used elsewhere in this process.
    pub(crate) const unsafe fn new(address: NonNull<u8>, len: usize) -> Self {
        Self { address, len }
    }

    /// The bytes of a slice.
    ///
    /// # Safety
    ///
    /// The slice's borrow outlives the operation that is given the span, and the slice is not used meanwhile. Any
    /// bytes are valid values of `T`, or only valid ones are written.
    pub(crate) unsafe fn of_slice<T>(slice: &mut [T]) -> Self {
        Self { address: NonNull::from(&mut *slice).cast(), len: size_of_val(slice) }
    }

    /// The bytes of a slice that are only read.
    ///
    /// # Safety
    ///
    /// The slice's borrow outlives the operation that is given the span, which writes nothing there.
    pub(crate) const unsafe fn of_shared(bytes: &[u8]) -> Self {
        Self { address: NonNull::from_ref(bytes).cast(), len: bytes.len() }
    }

    /// Memory that a transport allocated for the library's own use, kept beside its allocation.
    pub(crate) fn of_allocation(allocation: &Allocation) -> Self {
        // Only an operation that was lent the allocation reads or writes it, through spans; there never is a reference.
        Self { address: allocation.address(), len: allocation.len() }
    }

    /// The memory, for a transport.
    pub(crate) fn memory(self) -> Memory {
        // SAFETY: by the contract of `new` the memory is valid and nobody else uses it until the operation has ended; the
        // engine deregisters what it registered before an operation ends.
        unsafe { Memory::host(self.address, self.len) }
    }

    pub(crate) const fn address(self) -> NonNull<u8> {
        self.address
    }

    pub(crate) const fn len(self) -> usize {
        self.len
    }

    /// A part, or nothing when it lies outside.
    #[must_use]
    pub(crate) fn part(self, range: Range<usize>) -> Option<Self> {
        let len = range.end.checked_sub(range.start)?;
        if range.end > self.len {
            return None;
        }
        // SAFETY: the range was just found to lie inside the memory.
        let address = unsafe { self.address.add(range.start) };
        Some(Self { address, len })
    }

    /// Appends the bytes to `bytes`.
    pub(crate) fn append_to(self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.resize(start + self.len, 0);
        // SAFETY: the vector has just grown by `len` bytes; by the contract of `new` the span is readable, and it cannot
        // overlap a vector that this thread borrows mutably.
        unsafe { self.address.as_ptr().copy_to_nonoverlapping(bytes[start..].as_mut_ptr(), self.len) };
    }

    /// Overwrites the memory with as many bytes as both have.
    pub(crate) fn write(self, bytes: &[u8]) {
        let len = self.len.min(bytes.len());
        // SAFETY: by the contract of `new` the span is writable and overlaps no live reference, `bytes` included.
        unsafe { self.address.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), len) };
    }

    /// Overwrites the memory with as many bytes of `source` as both have. They may overlap.
    pub(crate) fn copy_from(self, source: Self) {
        let len = self.len.min(source.len);
        // SAFETY: by the contract of `new` both are valid for the operation; `copy` allows overlap.
        unsafe { self.address.as_ptr().copy_from(source.address.as_ptr(), len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_checked_and_copies_bounded() {
        let mut memory = [1_u8, 2, 3, 4];
        // SAFETY: `memory` outlives the span and is not used before the last use of it.
        let span = unsafe { Span::of_slice(&mut memory) };
        assert!(span.part(2..5).is_none());
        #[expect(clippy::reversed_empty_ranges)]
        let reversed = 3..2;
        assert!(span.part(reversed).is_none());
        let tail = span.part(2..4).unwrap();
        tail.write(&[7, 8, 9]);
        span.copy_from(tail);
        let mut copy = vec![0];
        span.append_to(&mut copy);
        assert_eq!(copy, [0, 7, 8, 7, 8]);
    }
}
