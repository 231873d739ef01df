//! Peers' memory, mapped once and found again at every step of a training loop.

use super::{Environment, Failure, Share};
use crate::Rank;
use crate::buffer::Span;
use gradwire_transport::{Direct, RegionKey, RemoteRegion};

/// Regions of one rank that are kept mapped. Beyond it the oldest is given back.
const KEPT: usize = 256;

#[derive(Debug)]
pub(super) struct Imports(Box<[Known]>);

#[derive(Debug, Default)]
struct Known {
    entries: Vec<Entry>,
    /// Where to look first: loops use the same buffers in the same order.
    next: usize,
    /// What to give back next.
    oldest: usize,
}

#[derive(Debug)]
struct Entry {
    key: RegionKey,
    region: RemoteRegion,
    mapped: Direct,
}

// SAFETY: an entry holds an address of a mapping of the process; it is read and written through spans only.
unsafe impl Send for Entry {}

impl Imports {
    pub(super) fn new(size: usize) -> Self {
        Self((0..size).map(|_| Known::default()).collect())
    }

    /// `len` bytes of a rank's memory.
    pub(super) fn span<E: Environment>(
        &mut self,
        rank: Rank,
        share: &Share,
        len: usize,
        environment: &mut E,
    ) -> Result<Span, Failure<E::Error>> {
        let known = &mut self.0[rank];
        let mapped = match known.find(&share.key) {
            Some(mapped) => mapped,
            None => known.import(rank, &share.key, environment)?,
        };
        // SAFETY: the mapping stays valid until it is released, which `self` does only between calls; nobody makes
        // references to it.
        let whole = unsafe { Span::new(mapped.address, mapped.len) };
        let end = share.offset.saturating_add(len);
        whole.part(share.offset..end).ok_or(Failure::Corrupt(rank, "a buffer that leaves its region"))
    }

    pub(super) fn release_all(&mut self, environment: &mut impl Environment) {
        for (rank, known) in self.0.iter_mut().enumerate() {
            known.entries.drain(..).for_each(|entry| environment.release(rank, entry.region));
        }
    }
}

impl Known {
    fn find(&mut self, key: &RegionKey) -> Option<Direct> {
        let (before, after) = self.entries.split_at(self.next.min(self.entries.len()));
        let offset = after.iter().chain(before).position(|entry| entry.key == *key)?;
        let found = (before.len() + offset) % self.entries.len();
        self.next = found + 1;
        Some(self.entries[found].mapped)
    }

    fn import<E: Environment>(
        &mut self,
        rank: Rank,
        key: &RegionKey,
        environment: &mut E,
    ) -> Result<Direct, E::Error> {
        let (region, mapped) = environment.import(rank, key)?;
        let entry = Entry { key: *key, region, mapped };
        if self.entries.len() < KEPT {
            self.entries.push(entry);
            self.next = self.entries.len();
        } else {
            let oldest = std::mem::replace(&mut self.entries[self.oldest], entry);
            environment.release(rank, oldest.region);
            self.next = self.oldest + 1;
            self.oldest = (self.oldest + 1) % KEPT;
        }
        Ok(mapped)
    }
}
