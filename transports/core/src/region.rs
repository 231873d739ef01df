//! Regions by name, for transports in which software moves the bytes: the one place that turns a region into
//! slices.
//!
//! A transport built on [`Regions`] needs no `unsafe` of its own, and meets points 7, 8 and 9 of the contract by
//! asking here for every access: names and keys that were given back are dead, ranges are checked without overflow, and a
//! slice lives no longer than one call.
//!
//! # Why the slices are sound
//!
//! Memory that a peer may write must never sit behind a live reference (point 8), and yet [`Regions::bytes`]
//! and [`Regions::bytes_mut`] hand out references. Four facts make that sound together:
//!
//! - *The memory is there.* Whoever made the [`Memory`] promised that it is valid and initialised until
//!   [`Regions::remove`]. Memory from [`Regions::allocate`] is kept alive by the registry itself, however
//!   early the caller drops the [`Allocation`].
//! - *No peer writes behind our back.* The registry serves transports in which this process itself places what
//!   peers send, by `bytes_mut`. A slice borrows the registry, so no second access through it can overlap.
//! - *The caller does not either.* It promised not to touch the bytes that an operation covers or that a peer may
//!   write while a method of the transport runs on another thread, and to hold no reference to them. On the
//!   thread that runs the method it cannot.
//! - *A slice covers the range asked for and nothing else.* A segment that has been notified, and that the caller
//!   is reading, is in no slice made for the segment after it.
//!
//! What this does not defend: a caller that reads a region while a hostile peer still holds a valid key for
//! those very bytes and another thread drives the transport. Take the key back first ([`Regions::remove`]), or
//! read under the lock that guards the transport.

mod block;
mod key;
mod remote;

use crate::slots::Slots;
use crate::{Allocation, Memory, MemoryKind, Region, RegionKey, RegisterError, TransportError};
use block::Block;
use key::KeyFields;
pub use remote::{Remote, RemoteRegions};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// The memory that one transport may read and write.
#[derive(Debug, Default)]
pub struct Regions {
    slots: Slots<Occupant>,
}

/// Bytes inside a region of ours that a peer may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The region.
    pub region: Region,
    /// First byte.
    pub offset: usize,
    /// Bytes.
    pub len: usize,
}

/// Why a peer may not reach what it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Denied {
    /// The region existed and was deregistered. The peer could not know: what it sent is thrown away, and it
    /// keeps its connection.
    #[error("the region was deregistered")]
    Revoked,
    /// The key was never exported. Only a broken or hostile peer sends it.
    #[error("a key that was never exported")]
    UnknownKey,
    /// The range leaves the region. Only a broken or hostile peer asks for it.
    #[error("a range outside the region")]
    OutOfRange,
}

impl Denied {
    /// The words for [`LossReason::Protocol`](crate::LossReason::Protocol) when this costs the peer its
    /// connection; `None` when the peer is innocent.
    #[must_use]
    pub const fn offence(self) -> Option<&'static str> {
        match self {
            Self::Revoked => None,
            Self::UnknownKey => Some("access with a key that was never exported"),
            Self::OutOfRange => Some("access to a range outside the region"),
        }
    }
}

impl Regions {
    /// No memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Slots::new() }
    }

    /// Gives memory of the caller a name.
    ///
    /// # Errors
    ///
    /// [`RegisterError::Unsupported`] for memory that is not the host's, [`RegisterError::Limit`] when there are no
    /// names left or the memory is longer than any object can be.
    pub fn insert(&mut self, memory: &Memory) -> Result<Region, RegisterError> {
        match memory.kind() {
            MemoryKind::Host { address, len } => self.occupy(address, len, None),
        }
    }

    /// Allocates `len` zeroed bytes at a page boundary and names them. The system hands out the pages when they
    /// are first touched, so they come to lie near the processor that uses them.
    ///
    /// # Errors
    ///
    /// [`RegisterError::System`] when the memory is not there, [`RegisterError::Limit`] as for `insert`.
    pub fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError> {
        let block = Arc::new(Block::zeroed(len)?);
        let address = block.address();
        let region = self.occupy(address, len, Some(Arc::clone(&block)))?;
        // SAFETY: the block is valid for `len` initialised bytes at a page boundary while any `Arc` of it lives;
        // besides the holder only this registry, of the transport that makes the allocation, uses it.
        let allocation = unsafe { Allocation::new(address, len, Box::new(block)) };
        Ok((region, allocation))
    }

    /// Forgets a region. Afterwards neither its name nor any key of it gives access. `false` when it was unknown.
    pub fn remove(&mut self, region: Region) -> bool {
        self.slots.remove(region.index(), region.generation()).is_some()
    }

    /// The size of a region in bytes; `None` when it is unknown or removed.
    #[must_use]
    pub fn size(&self, region: Region) -> Option<usize> {
        self.occupant(region).map(|occupant| occupant.len)
    }

    /// The key to a region, the same one each time; `None` when it is unknown or removed.
    ///
    /// The key contains 128 bits from `random`, asked for at the first export. A peer proves that it was given the
    /// key by bringing them back with each access: that stands for a list of who was given what, and a peer may
    /// pass its key on to another as it may pass on its bytes.
    pub fn export(&mut self, region: Region, mut random: impl FnMut() -> u64) -> Option<RegionKey> {
        let occupant = self.slots.get_mut(region.index(), region.generation())?;
        let nonce = *occupant.nonce.get_or_insert_with(|| u128::from(random()) << 64 | u128::from(random()));
        Some(KeyFields { region, len: occupant.len as u64, nonce }.encode())
    }

    /// Whether the range lies inside the region.
    ///
    /// # Errors
    ///
    /// [`TransportError::OutOfRange`] when it does not, or when the region is gone.
    pub fn check(&self, region: Region, offset: usize, len: usize) -> Result<(), TransportError> {
        self.locate(region, offset, len).map(drop)
    }

    /// What a peer may reach that shows `key` and asks for `len` bytes from `offset` on.
    ///
    /// Of a key that is no longer valid only the name is compared. Whoever invents one is denied as the innocent
    /// are, and wins nothing.
    ///
    /// # Errors
    ///
    /// See [`Denied`].
    pub fn resolve(&self, key: &RegionKey, offset: u64, len: u64) -> Result<Span, Denied> {
        let KeyFields { region, nonce, .. } = KeyFields::decode(key).ok_or(Denied::UnknownKey)?;
        if self.slots.is_past(region.index(), region.generation()) {
            return Err(Denied::Revoked);
        }
        let occupant = self.occupant(region).ok_or(Denied::UnknownKey)?;
        if occupant.nonce != Some(nonce) {
            return Err(Denied::UnknownKey);
        }
        let (Ok(offset), Ok(len)) = (usize::try_from(offset), usize::try_from(len)) else {
            return Err(Denied::OutOfRange);
        };
        if !contains(occupant.len, offset, len) {
            return Err(Denied::OutOfRange);
        }
        Ok(Span { region, offset, len })
    }

    /// Bytes of a region, to read.
    ///
    /// # Errors
    ///
    /// [`TransportError::OutOfRange`] when the range lies outside, or when the region is gone.
    pub fn bytes(&self, region: Region, offset: usize, len: usize) -> Result<&[u8], TransportError> {
        let first = self.locate(region, offset, len)?;
        // SAFETY: `locate` returned the start of `len` bytes inside the region, which by the contract of
        // `Memory::host` (or because we hold the block) are valid and initialised while `self` is borrowed, and which nobody
        // writes in that time: the caller promised so, and `bytes_mut` needs `self` mutably. `len` is at most
        // `isize::MAX`, as `occupy` checked for the whole region.
        Ok(unsafe { std::slice::from_raw_parts(first.as_ptr(), len) })
    }

    /// Bytes of a region, to write what a peer sent.
    ///
    /// # Errors
    ///
    /// [`TransportError::OutOfRange`] when the range lies outside, or when the region is gone.
    pub fn bytes_mut(
        &mut self,
        region: Region,
        offset: usize,
        len: usize,
    ) -> Result<&mut [u8], TransportError> {
        let first = self.locate(region, offset, len)?;
        // SAFETY: as in `bytes`; and the slice is the only one, because it borrows `self` mutably and the caller
        // promised that nobody else accesses these bytes meanwhile.
        Ok(unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), len) })
    }

    fn occupy(
        &mut self,
        address: NonNull<u8>,
        len: usize,
        block: Option<Arc<Block>>,
    ) -> Result<Region, RegisterError> {
        if isize::try_from(len).is_err() {
            return Err(RegisterError::Limit { limit: isize::MAX as usize });
        }
        let (index, generation) = self
            .slots
            .insert(Occupant { address, len, nonce: None, _block: block })
            .ok_or(RegisterError::Limit { limit: u32::MAX as usize })?;
        Ok(Region::new(index, generation))
    }

    fn occupant(&self, region: Region) -> Option<&Occupant> {
        self.slots.get(region.index(), region.generation())
    }

    fn locate(&self, region: Region, offset: usize, len: usize) -> Result<NonNull<u8>, TransportError> {
        let occupant =
            self.occupant(region).ok_or(TransportError::OutOfRange { offset, len, region_len: 0 })?;
        if !contains(occupant.len, offset, len) {
            return Err(TransportError::OutOfRange { offset, len, region_len: occupant.len });
        }
        // SAFETY: the region is one object of `occupant.len` bytes, at most `isize::MAX`, and `offset` is not
        // beyond its end.
        Ok(unsafe { occupant.address.add(offset) })
    }
}

/// Whether `offset + len` does not leave `size`, without adding.
fn contains(size: usize, offset: usize, len: usize) -> bool {
    offset <= size && len <= size - offset
}

struct Occupant {
    address: NonNull<u8>,
    len: usize,
    /// Drawn at the first export.
    nonce: Option<u128>,
    _block: Option<Arc<Block>>,
}

impl fmt::Debug for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the nonce: it is a secret between us and those who have the key.
        f.debug_struct("Occupant")
            .field("address", &self.address)
            .field("len", &self.len)
            .field("exported", &self.nonce.is_some())
            .finish_non_exhaustive()
    }
}

// SAFETY: by the contract of `Memory::host` the memory may be accessed from any thread, and a block of ours is not tied
// to one; the address is only used through `Regions`, under its borrows.
unsafe impl Send for Occupant {}

#[cfg(test)]
mod tests;
