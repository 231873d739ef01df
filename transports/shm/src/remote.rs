//! Regions by their keys: ours as peers know them, and peers' as we do.

use crate::address::Name;
use crate::segment::{self, Mapping};
use gradwire_transport::{Peer, RegionKey};
use rustix::fd::OwnedFd;
use sha2::{Digest, Sha256};
use std::ptr::NonNull;
use std::sync::Arc;

/// What a key says. Keys of one process say the same to all peers: all of them map the segment anyway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) id: u64,
    pub(crate) len: u64,
}

impl Key {
    /// The key as bytes; `owner` is whose region it is.
    pub(crate) fn encode(self, owner: Name) -> RegionKey {
        let mut bytes = [0; RegionKey::LEN];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..].copy_from_slice(&self.digest(owner));
        RegionKey::from_bytes(bytes)
    }

    /// `None` when `owner` cannot have made it.
    pub(crate) fn decode(key: &RegionKey, owner: Name) -> Option<Self> {
        let bytes = key.as_bytes();
        let (id, rest) = bytes.split_first_chunk()?;
        let (len, digest) = rest.split_first_chunk()?;
        let key = Self { id: u64::from_le_bytes(*id), len: u64::from_le_bytes(*len) };
        (digest == key.digest(owner)).then_some(key)
    }

    /// Tells a mangled key, or one of another process, from one whose segment has not arrived yet.
    fn digest(self, owner: Name) -> [u8; 16] {
        let mut hasher = Sha256::new();
        hasher.update(b"gradwire shm region");
        hasher.update(owner.0);
        hasher.update(self.id.to_le_bytes());
        hasher.update(self.len.to_le_bytes());
        let digest: [u8; 32] = hasher.finalize().into();
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        short
    }
}

/// A peer's region, mapped here.
#[derive(Debug)]
pub(crate) struct Segment {
    mapping: Mapping,
    len: usize,
}

impl Segment {
    /// Maps what a peer passed.
    pub(crate) fn accept(descriptor: &OwnedFd, len: u64) -> Result<Self, &'static str> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0).ok_or("a region of no size")?;
        let segment_len = segment::region_segment_len(len).ok_or("a region of no size")?;
        Ok(Self { mapping: segment::accept(descriptor, segment_len)?, len })
    }
}

/// A peer's region as the caller holds it.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) peer: Peer,
    /// `None` for a region of no bytes.
    segment: Option<Arc<Segment>>,
}

impl Remote {
    pub(crate) fn new(peer: Peer, segment: Option<Arc<Segment>>) -> Self {
        Self { peer, segment }
    }

    pub(crate) fn address(&self) -> NonNull<u8> {
        self.segment.as_ref().map_or(segment::nowhere(), |segment| segment.mapping.address())
    }

    pub(crate) fn len(&self) -> usize {
        self.segment.as_ref().map_or(0, |segment| segment.len)
    }

    /// Whether the peer has other memory there now: nobody reads what we write here.
    pub(crate) fn is_revoked(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.mapping.is_revoked())
    }
}

#[cfg(test)]
mod tests {
    use super::Key;
    use crate::address::Name;
    use gradwire_transport::RegionKey;

    #[test]
    fn a_key_with_any_bit_changed_or_of_another_owner_is_refused() {
        let key = Key { id: 3, len: 4096 };
        let bytes = *key.encode(Name([1; 16])).as_bytes();
        assert_eq!(Key::decode(&RegionKey::from_bytes(bytes), Name([1; 16])), Some(key));
        assert_eq!(Key::decode(&RegionKey::from_bytes(bytes), Name([2; 16])), None);
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Key::decode(&RegionKey::from_bytes(changed), Name([1; 16])), None, "bit {bit}");
        }
    }
}
