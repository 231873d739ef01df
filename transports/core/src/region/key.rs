//! What is inside a [`RegionKey`].

use crate::{Region, RegionKey};
use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The fields of a key, decoded. Nothing is said about whether they are true.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyFields {
    pub(super) region: Region,
    pub(super) len: u64,
    pub(super) nonce: u128,
}

impl KeyFields {
    pub(super) fn encode(self) -> RegionKey {
        RegionKey::from_bytes(zerocopy::transmute!(Layout {
            nonce: self.nonce.into(),
            index: self.region.index().into(),
            generation: self.region.generation().into(),
            len: self.len.into(),
        }))
    }

    /// `None` for bytes that no process exports: a region longer than any object.
    pub(super) fn decode(key: &RegionKey) -> Option<Self> {
        let layout: Layout = zerocopy::transmute!(*key.as_bytes());
        let len = layout.len.get();
        (len <= isize::MAX as u64).then(|| Self {
            region: Region::new(layout.index.get(), layout.generation.get()),
            len,
            nonce: layout.nonce.get(),
        })
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    nonce: U128,
    index: U32,
    generation: U32,
    len: U64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_key_are_fixed() {
        let key = KeyFields {
            region: Region::new(0x0403_0201, 0x1413_1211),
            len: 0x2827_2625_2423_2221,
            nonce: 0x4f4e_4d4c_4b4a_4948_4746_4544_4342_4140,
        }
        .encode();
        let expected: Vec<u8> =
            [0x40..=0x4f, 0x01..=0x04, 0x11..=0x14, 0x21..=0x28].into_iter().flatten().collect();
        assert_eq!(key.as_bytes().as_slice(), expected);
    }

    #[test]
    fn a_region_longer_than_any_object_is_no_key() {
        let fields = KeyFields { region: Region::new(1, 2), len: isize::MAX as u64, nonce: 3 };
        assert!(KeyFields::decode(&fields.encode()) == Some(fields));
        assert!(KeyFields::decode(&KeyFields { len: isize::MAX as u64 + 1, ..fields }.encode()).is_none());
        assert!(KeyFields::decode(&RegionKey::from_bytes([0xff; 32])).is_none());
    }
}
