//! Peers' memory by name.

use crate::key::KeyFields;
use gradwire_transport::slots::Slots;
use gradwire_transport::{ImportError, RegionKey, RemoteRegion, TransportError};

#[derive(Debug, Default)]
pub(crate) struct Remotes {
    slots: Slots<Remote>,
}

/// A region of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote {
    /// The slot of the peer's link.
    pub(crate) link: u32,
    pub(crate) key: RegionKey,
    pub(crate) fields: KeyFields,
    /// Its owner has taken it back: what goes there is thrown away.
    pub(crate) is_withdrawn: bool,
}

impl Remotes {
    pub(crate) fn insert(&mut self, remote: Remote) -> Result<RemoteRegion, ImportError> {
        let (index, generation) = self
            .slots
            .insert(remote)
            .ok_or(ImportError::System { context: "name a remote region", code: 0 })?;
        Ok(RemoteRegion::new(index, generation))
    }

    /// The region, when the range lies inside it.
    pub(crate) fn locate(
        &self,
        region: RemoteRegion,
        offset: usize,
        len: usize,
    ) -> Result<Remote, TransportError> {
        let remote = self.slots.get(region.index(), region.generation());
        // The cast is exact: `KeyFields::verify` saw to it.
        let size = remote.map(|remote| remote.fields.len as usize);
        match (remote, size) {
            (Some(remote), Some(size)) if offset <= size && len <= size - offset => Ok(*remote),
            _ => Err(TransportError::OutOfRange { offset, len, region_len: size.unwrap_or_default() }),
        }
    }

    pub(crate) fn release(&mut self, region: RemoteRegion) {
        self.slots.remove(region.index(), region.generation());
    }

    pub(crate) fn release_link(&mut self, link: u32) {
        self.slots.remove_where(|remote| remote.link == link);
    }

    pub(crate) fn withdraw(&mut self, link: u32, key: &RegionKey) {
        for remote in self.slots.values_mut().filter(|remote| remote.link == link && remote.key == *key) {
            remote.is_withdrawn = true;
        }
    }
}
