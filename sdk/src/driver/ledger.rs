//! Memory that was allocated for users: where it lies, and what they have given back.

use gradwire_transport::{Allocation, Region, RegionKey};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reached without the driver's lock: a buffer may be dropped inside of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    returned: AtomicBool,
    count: AtomicUsize,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    /// By first address: memory that peers can map.
    shared: BTreeMap<usize, Entry>,
    returns: Vec<(usize, Region, Allocation)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    len: usize,
    carrier: usize,
    region: Region,
    key: RegionKey,
}

impl Ledger {
    /// Enters memory that peers can map.
    pub(crate) fn enter(&self, allocation: &Allocation, carrier: usize, region: Region, key: RegionKey) {
        let entry = Entry { len: allocation.len(), carrier, region, key };
        self.books().shared.insert(allocation.address().as_ptr().addr(), entry);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// The region in which a range of addresses lies, and where.
    pub(crate) fn find(&self, address: usize, len: usize) -> Option<(RegionKey, usize)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let books = self.books();
        let (start, entry) = books.shared.range(..=address).next_back()?;
        let offset = address - start;
        (offset + len <= entry.len).then_some((entry.key, offset))
    }

    /// Peers must no longer reach the memory: the region to revoke.
    pub(crate) fn strike(&self, key: &RegionKey) -> Option<(usize, Region)> {
        let mut books = self.books();
        let address =
            books.shared.iter().find(|(_, entry)| entry.key == *key).map(|(address, _)| *address)?;
        let entry = books.shared.remove(&address)?;
        self.count.fetch_sub(1, Ordering::Release);
        Some((entry.carrier, entry.region))
    }

    /// Memory comes back.
    pub(crate) fn give_back(&self, carrier: usize, region: Region, allocation: Allocation) {
        let mut books = self.books();
        if books.shared.remove(&allocation.address().as_ptr().addr()).is_some() {
            self.count.fetch_sub(1, Ordering::Release);
        }
        books.returns.push((carrier, region, allocation));
        self.returned.store(true, Ordering::Release);
    }

    /// All that has come back since the last call.
    pub(crate) fn take_returns(&self) -> Vec<(usize, Region, Allocation)> {
        // To look costs less than to take, and is done at every turn.
        if self.returned.load(Ordering::Relaxed) && self.returned.swap(false, Ordering::Acquire) {
            std::mem::take(&mut self.books().returns)
        } else {
            Vec::new()
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
