//! Buffers that the library allocates: where ranks share memory, all of them can reach these.

use super::Target;
use crate::driver::Ledger;
use crate::{Element, Error, Result};
use gradwire_transport::{Allocation, Region};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Elements in memory of the library's own; made by [`Communicator::allocate`](crate::Communicator::allocate).
///
/// It is used as a slice. Where ranks share a host its pages are shared with them, so that a collective reads and writes
/// them without a copy; peers touch them during collectives only.
pub struct Buffer<T: Element> {
    memory: Memory<T>,
    count: usize,
}

enum Memory<T> {
    Shared { allocation: Option<Allocation>, carrier: usize, region: Region, ledger: Arc<Ledger> },
    Private(Vec<T>),
}

impl<T: Element> Buffer<T> {
    /// Zeros in ordinary memory.
    pub(crate) fn private(count: usize) -> Result<Self> {
        let mut values = Vec::new();
        values
            .try_reserve_exact(count)
            .map_err(|_| Error::System(format!("there is no memory for {count} elements").into()))?;
        values.resize(count, T::new_zeroed());
        Ok(Self { memory: Memory::Private(values), count })
    }

    /// Zeros in memory of a transport, of at least `count` elements.
    pub(crate) fn shared(
        allocation: Allocation,
        carrier: usize,
        region: Region,
        count: usize,
        ledger: Arc<Ledger>,
    ) -> Self {
        let count = count.min(allocation.len() / size_of::<T>().max(1));
        Self { memory: Memory::Shared { allocation: Some(allocation), carrier, region, ledger }, count }
    }

    /// The values, for an operation that is concluded before the buffer is used or dropped.
    pub(crate) fn target(&mut self) -> Target<[T]> {
        // SAFETY: a request owns the buffer while its operation is under way, and hands it to the driver to be dropped
        // after the operation if it is dropped before.
        unsafe { Target::new(&mut self[..]) }
    }

    fn address(&self) -> NonNull<T> {
        match &self.memory {
            Memory::Shared { allocation: Some(allocation), .. } => allocation.address().cast(),
            Memory::Shared { allocation: None, .. } => NonNull::dangling(),
            Memory::Private(values) => NonNull::from(values.as_slice()).cast(),
        }
    }
}

impl<T: Element> Default for Buffer<T> {
    /// No elements.
    fn default() -> Self {
        Self { memory: Memory::Private(Vec::new()), count: 0 }
    }
}

impl<T: Element> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `count` initialised elements (it began zeroed, and any bytes are an element), aligned to
        // a page or by the vector. Peers write it only during collectives, which borrow the buffer mutably or own it.
        unsafe { std::slice::from_raw_parts(self.address().as_ptr(), self.count) }
    }
}

impl<T: Element> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let count = self.count;
        match &mut self.memory {
            Memory::Private(values) => values,
            Memory::Shared { allocation, .. } => {
                let address =
                    allocation.as_ref().map_or(NonNull::dangling(), |allocation| allocation.address().cast());
                // SAFETY: as in `deref`; the allocation is owned by this buffer alone, and the borrow is exclusive.
                unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), count) }
            }
        }
    }
}

impl<T: Element> Drop for Buffer<T> {
    /// The driver takes the region back at its next turn, and the memory with it.
    fn drop(&mut self) {
        if let Memory::Shared { allocation, carrier, region, ledger } = &mut self.memory
            && let Some(allocation) = allocation.take()
        {
            ledger.give_back(*carrier, *region, allocation);
        }
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}
