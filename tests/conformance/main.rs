//! The conformance suite, mounted on every backend.

use gradwire_transport::RegionKey;

mod libfabric;
mod shm;
mod sim;
mod tcp;

/// A key of [`Regions`](gradwire_transport::region::Regions), whose last field is the length: a peer may write
/// there what it likes.
fn stretch(key: &RegionKey, len: u64) -> RegionKey {
    let mut bytes = *key.as_bytes();
    bytes[24..].copy_from_slice(&len.to_le_bytes());
    RegionKey::from_bytes(bytes)
}
