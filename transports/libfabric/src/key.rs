//! What is inside a [`RegionKey`]: what the provider wants to see, and a proof that its owner made it.

use gradwire_transport::RegionKey;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// By which an endpoint signs its keys. Its peers are told it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The fields of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyFields {
    pub(crate) key: u64,
    pub(crate) address: u64,
    pub(crate) len: u64,
}

impl KeyFields {
    pub(crate) fn sign(self, secret: &Secret) -> RegionKey {
        RegionKey::from_bytes(zerocopy::transmute!(Layout {
            proof: self.proof(secret),
            key: self.key.into(),
            address: self.address.into(),
            len: self.len.into(),
        }))
    }

    /// `None` for a key that the owner of `secret` did not sign.
    pub(crate) fn verify(key: &RegionKey, secret: &Secret) -> Option<Self> {
        let layout: Layout = zerocopy::transmute!(*key.as_bytes());
        let fields = Self { key: layout.key.get(), address: layout.address.get(), len: layout.len.get() };
        (fields.proof(secret) == layout.proof && isize::try_from(fields.len).is_ok()).then_some(fields)
    }

    fn proof(self, secret: &Secret) -> [u8; 8] {
        let mut block = [0; 64];
        block[..32].copy_from_slice(&secret.0);
        let mac = Hmac::<Sha256>::new(&block.into());
        let mac = [self.key, self.address, self.len]
            .iter()
            .fold(mac, |mac, field| mac.chain_update(field.to_le_bytes()));
        let digest = mac.finalize().into_bytes();
        std::array::from_fn(|byte| digest[byte])
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    proof: [u8; 8],
    key: U64,
    address: U64,
    len: U64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_key_counts_and_so_does_who_made_it() {
        let fields = KeyFields { key: 1, address: 0x7fff_0000, len: 4096 };
        let (secret, other) = (Secret([1; 32]), Secret([2; 32]));
        let key = fields.sign(&secret);
        assert_eq!(KeyFields::verify(&key, &secret), Some(fields));
        assert_eq!(KeyFields::verify(&key, &other), None);
        for byte in 0..RegionKey::LEN {
            let mut bytes = *key.as_bytes();
            bytes[byte] ^= 0x10;
            assert_eq!(KeyFields::verify(&RegionKey::from_bytes(bytes), &secret), None, "byte {byte}");
        }
    }
}
