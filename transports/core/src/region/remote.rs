//! Peers' regions by name.

use super::contains;
use super::key::KeyFields;
use crate::slots::Slots;
use crate::{ImportError, Peer, RegionKey, RemoteRegion, TransportError};

/// The regions of peers that one transport may reach, as the origin knows them.
#[derive(Debug, Default)]
pub struct RemoteRegions {
    slots: Slots<Remote>,
}

/// One region of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remote {
    /// Whose.
    pub peer: Peer,
    /// What to show to the peer.
    pub key: RegionKey,
    /// Bytes, as the peer says.
    pub len: usize,
}

impl RemoteRegions {
    /// No region.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Slots::new() }
    }

    /// Gives a name to the region behind `key`. Whether `peer` is connected is up to the caller.
    ///
    /// # Errors
    ///
    /// [`ImportError::BadKey`] for a key that nobody can have exported; [`ImportError::System`] when there are no
    /// names left.
    pub fn import(&mut self, peer: Peer, key: &RegionKey) -> Result<RemoteRegion, ImportError> {
        let fields = KeyFields::decode(key).ok_or(ImportError::BadKey)?;
        let len = usize::try_from(fields.len).map_err(|_| ImportError::BadKey)?;
        let (index, generation) = self
            .slots
            .insert(Remote { peer, key: *key, len })
            .ok_or(ImportError::System { context: "name a remote region", code: 0 })?;
        Ok(RemoteRegion::new(index, generation))
    }

    /// The region, when the range lies inside it.
    ///
    /// # Errors
    ///
    /// [`TransportError::OutOfRange`] when it does not, or when the region is unknown or released.
    pub fn locate(&self, region: RemoteRegion, offset: usize, len: usize) -> Result<&Remote, TransportError> {
        let remote = self
            .slots
            .get(region.index(), region.generation())
            .ok_or(TransportError::OutOfRange { offset, len, region_len: 0 })?;
        if !contains(remote.len, offset, len) {
            return Err(TransportError::OutOfRange { offset, len, region_len: remote.len });
        }
        Ok(remote)
    }

    /// Forgets a region; unknown ones are ignored.
    pub fn release(&mut self, region: RemoteRegion) {
        self.slots.remove(region.index(), region.generation());
    }

    /// Forgets all regions of a peer that is gone.
    pub fn release_peer(&mut self, peer: Peer) {
        self.slots.remove_where(|remote| remote.peer == peer);
    }
}
