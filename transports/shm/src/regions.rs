//! The memory of this process that the transport may read and write.

use crate::address::Name;
use crate::frame::Frame;
use crate::remote::Key;
use crate::segment::{self, Mapping, Refused};
use gradwire_transport::slots::Slots;
use gradwire_transport::{Allocation, Memory, MemoryKind, Region, RegionKey, RegisterError, TransportError};
use rustix::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Regions {
    slots: Slots<Local>,
    /// Numbers grow, so that a peer knows of an unknown one whether it is still to come.
    next_id: u64,
}

#[derive(Debug)]
enum Local {
    /// Memory of the caller. Peers cannot reach it.
    Registered(Range),
    Allocated {
        id: u64,
        len: usize,
        shared: Option<Shared>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Range {
    address: NonNull<u8>,
    len: usize,
}

// SAFETY: by the contract of `Memory::host` the memory may be accessed from any thread.
unsafe impl Send for Range {}

/// A segment and where it lies. The descriptor stays open for peers that connect later.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    mapping: Arc<Mapping>,
    descriptor: Arc<OwnedFd>,
}

/// What peers are to be told of a region.
pub(crate) type Announcement = (Frame, Option<Arc<OwnedFd>>);

impl Regions {
    pub(crate) fn register(&mut self, memory: &Memory) -> Result<Region, RegisterError> {
        match memory.kind() {
            MemoryKind::Host { address, len } => self.occupy(Local::Registered(Range { address, len })),
            _ => Err(RegisterError::Unsupported),
        }
    }

    /// `len` zeroed bytes, and what to tell peers of them.
    pub(crate) fn allocate(
        &mut self,
        len: usize,
    ) -> Result<(Region, Allocation, Option<Announcement>), RegisterError> {
        if isize::try_from(len).is_err() {
            return Err(RegisterError::Limit { limit: isize::MAX as usize });
        }
        let shared = match len {
            0 => None,
            _ => Some(
                Shared::create(len)
                    .map_err(|Refused { context, code }| RegisterError::System { context, code })?,
            ),
        };
        let allocation = match &shared {
            Some(shared) => segment::allocation(&shared.mapping, len),
            None => segment::empty_allocation(),
        };
        let id = self.next_id;
        let announcement = shared.as_ref().map(|shared| shared.announcement(id, len));
        let region = self.occupy(Local::Allocated { id, len, shared })?;
        self.next_id += 1;
        Ok((region, allocation, announcement))
    }

    fn occupy(&mut self, local: Local) -> Result<Region, RegisterError> {
        let name = self.slots.insert(local).ok_or(RegisterError::Limit { limit: u32::MAX as usize })?;
        Ok(Region::new(name.0, name.1))
    }

    /// Forgets a region and makes its memory private. What to tell peers of it.
    pub(crate) fn deregister(&mut self, region: Region) -> Option<Frame> {
        match self.slots.remove(region.index(), region.generation())? {
            Local::Allocated { id, shared: Some(shared), .. } => {
                shared.revoke();
                Some(Frame::Revoked { id })
            }
            _ => None,
        }
    }

    /// Makes all memory private that is still in use, for the end of the transport.
    pub(crate) fn revoke_all(&mut self) {
        for local in self.slots.values() {
            if let Local::Allocated { shared: Some(shared), .. } = local {
                shared.revoke();
            }
        }
        self.slots = Slots::new();
    }

    pub(crate) fn export(&self, region: Region, owner: Name) -> Option<RegionKey> {
        match self.slots.get(region.index(), region.generation())? {
            Local::Allocated { id, len, .. } => Some(Key { id: *id, len: *len as u64 }.encode(owner)),
            Local::Registered(_) => None,
        }
    }

    /// What a new peer is to be told, in the order of numbers.
    pub(crate) fn announcements(&self) -> Vec<Announcement> {
        let mut shared: Vec<_> = self
            .slots
            .values()
            .filter_map(|local| match local {
                Local::Allocated { id, len, shared: Some(shared) } => Some((*id, *len, shared)),
                _ => None,
            })
            .collect();
        shared.sort_unstable_by_key(|(id, ..)| *id);
        shared.into_iter().map(|(id, len, shared)| shared.announcement(id, len)).collect()
    }

    /// Where `len` bytes from `offset` on begin.
    pub(crate) fn locate(
        &self,
        region: Region,
        offset: usize,
        len: usize,
    ) -> Result<NonNull<u8>, TransportError> {
        let (address, region_len) = match self.slots.get(region.index(), region.generation()) {
            Some(Local::Registered(range)) => (range.address, range.len),
            Some(Local::Allocated { len, shared, .. }) => {
                (shared.as_ref().map_or(segment::nowhere(), |shared| shared.mapping.address()), *len)
            }
            None => (segment::nowhere(), 0),
        };
        locate(address, region_len, offset, len)
    }
}

impl Shared {
    fn create(len: usize) -> Result<Self, Refused> {
        let segment_len = segment::region_segment_len(len).ok_or_else(Refused::no_memory)?;
        let (descriptor, mapping) = segment::create("gradwire-region", segment_len)?;
        Ok(Self { mapping: Arc::new(mapping), descriptor: Arc::new(descriptor) })
    }

    fn announcement(&self, id: u64, len: usize) -> Announcement {
        (Frame::Region { id, len: len as u64 }, Some(Arc::clone(&self.descriptor)))
    }

    fn revoke(&self) {
        self.mapping.mark_revoked();
        // Where nobody holds the allocation any more, unmapping is all there is to do.
        if Arc::strong_count(&self.mapping) > 1 {
            self.mapping.make_private();
        }
    }
}

/// Where `offset` lies in `region_len` bytes at `address`, if `len` bytes from there on are inside.
pub(crate) fn locate(
    address: NonNull<u8>,
    region_len: usize,
    offset: usize,
    len: usize,
) -> Result<NonNull<u8>, TransportError> {
    if offset > region_len || len > region_len - offset {
        return Err(TransportError::OutOfRange { offset, len, region_len });
    }
    Ok(segment::offset_of(address, offset))
}
