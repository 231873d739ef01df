//! The memory of this side by name.
//!
//! Memory of the library's own is given to the provider as it is, and kept until the provider and all peers are done with
//! it. Memory of the caller never is: the provider cannot be made to let go of it at once, so that its bytes go through
//! memory of the library's own, copied when an operation is posted or when it has ended.

use crate::key::{KeyFields, Secret};
use crate::memory::{Memory, Piece};
use gradwire_transport::slots::Slots;
use gradwire_transport::{MemoryKind, Region, RegionKey, RegisterError, TransportError};
use std::ptr::NonNull;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Regions {
    slots: Slots<Occupant>,
}

#[derive(Debug)]
pub(crate) struct Occupant {
    place: Place,
    /// Signed at the first export.
    pub(crate) key: Option<RegionKey>,
}

#[derive(Debug)]
enum Place {
    Own(Arc<Memory>),
    Caller { address: NonNull<u8>, len: usize },
}

// SAFETY: by the contract of `Memory::host` the caller's memory may be accessed from any thread; its address is only used
// under the borrows of `Regions`.
unsafe impl Send for Place {}

impl Regions {
    pub(crate) fn insert_own(&mut self, memory: Arc<Memory>) -> Result<Region, RegisterError> {
        self.insert(Place::Own(memory))
    }

    pub(crate) fn insert_caller(
        &mut self,
        memory: &gradwire_transport::Memory,
    ) -> Result<Region, RegisterError> {
        match memory.kind() {
            MemoryKind::Host { address, len } if isize::try_from(len).is_ok() => {
                self.insert(Place::Caller { address, len })
            }
            MemoryKind::Host { .. } => Err(RegisterError::Limit { limit: isize::MAX as usize }),
            // A kind that comes later: memory of a device, which nobody here can copy.
            _ => Err(RegisterError::Unsupported),
        }
    }

    /// Forgets a region.
    pub(crate) fn remove(&mut self, region: Region) -> Option<Occupant> {
        self.slots.remove(region.index(), region.generation())
    }

    /// The key of memory of the library's own, the same each time.
    pub(crate) fn export(&mut self, region: Region, secret: &Secret) -> Option<RegionKey> {
        let occupant = self.slots.get_mut(region.index(), region.generation())?;
        let Place::Own(memory) = &occupant.place else { return None };
        let (key, address, len) = (memory.key()?, memory.remote_address(), memory.len() as u64);
        let key = KeyFields { key, address, len }.sign(secret);
        Some(*occupant.key.get_or_insert(key))
    }

    /// Whether the range lies inside the region.
    pub(crate) fn check(&self, region: Region, offset: usize, len: usize) -> Result<(), TransportError> {
        let size = self.occupant(region).map(Occupant::len);
        match size {
            Some(size) if offset <= size && len <= size - offset => Ok(()),
            _ => Err(TransportError::OutOfRange { offset, len, region_len: size.unwrap_or_default() }),
        }
    }

    /// The bytes of a range, when the provider may have them.
    pub(crate) fn piece(&self, region: Region, offset: usize, len: usize) -> Option<Piece> {
        match &self.occupant(region)?.place {
            Place::Own(memory) => memory.piece(offset, len),
            Place::Caller { .. } => None,
        }
    }

    /// Copies a range to the beginning of a piece that is as long.
    pub(crate) fn copy_out(
        &self,
        region: Region,
        offset: usize,
        len: usize,
        piece: &Piece,
    ) -> Result<(), TransportError> {
        let first = self.locate(region, offset, len)?;
        // SAFETY: `locate` returned the first of `len` bytes which by the contract of `Memory::host` are valid and
        // initialised, and which nobody writes while a method of the transport runs. The piece is in a mapping of its own:
        // if the region is of the library, callers pass a piece of another memory.
        unsafe { piece.fill_from(first.as_ptr(), len) };
        Ok(())
    }

    /// Copies the beginning of a piece to a range.
    pub(crate) fn copy_in(
        &mut self,
        region: Region,
        offset: usize,
        len: usize,
        piece: &Piece,
    ) -> Result<(), TransportError> {
        let first = self.locate(region, offset, len)?;
        // SAFETY: as in `copy_out`; the caller promised to hold no reference to bytes that an operation under way covers.
        unsafe { piece.copy_to(first.as_ptr(), len) };
        Ok(())
    }

    fn insert(&mut self, place: Place) -> Result<Region, RegisterError> {
        let (index, generation) = self
            .slots
            .insert(Occupant { place, key: None })
            .ok_or(RegisterError::Limit { limit: u32::MAX as usize })?;
        Ok(Region::new(index, generation))
    }

    fn occupant(&self, region: Region) -> Option<&Occupant> {
        self.slots.get(region.index(), region.generation())
    }

    fn locate(&self, region: Region, offset: usize, len: usize) -> Result<NonNull<u8>, TransportError> {
        self.check(region, offset, len)?;
        let gone = TransportError::OutOfRange { offset, len, region_len: 0 };
        match &self.occupant(region).ok_or(gone.clone())?.place {
            Place::Own(memory) => memory.piece(offset, len).map(|piece| piece.address()).ok_or(gone),
            // SAFETY: `check` found the offset to be inside the region, which is one object.
            Place::Caller { address, .. } => Ok(unsafe { address.add(offset) }),
        }
    }
}

impl Occupant {
    fn len(&self) -> usize {
        match &self.place {
            Place::Own(memory) => memory.len(),
            Place::Caller { len, .. } => *len,
        }
    }

    /// The memory, when it is the library's own.
    pub(crate) fn into_own(self) -> Option<Arc<Memory>> {
        match self.place {
            Place::Own(memory) => Some(memory),
            Place::Caller { .. } => None,
        }
    }
}
