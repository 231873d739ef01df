//! Memory that users have given back, until the driver takes it.

use gradwire_transport::{Allocation, Region};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A list that a buffer's drop can reach without the driver's lock: it may run inside of it.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    any: AtomicBool,
    list: Mutex<Vec<(usize, Region, Allocation)>>,
}

impl Returns {
    pub(crate) fn give(&self, carrier: usize, region: Region, allocation: Allocation) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push((carrier, region, allocation));
        self.any.store(true, Ordering::Release);
    }

    /// All that was given back since the last call.
    pub(crate) fn take(&self) -> Vec<(usize, Region, Allocation)> {
        if self.any.swap(false, Ordering::Acquire) {
            std::mem::take(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner))
        } else {
            Vec::new()
        }
    }
}
