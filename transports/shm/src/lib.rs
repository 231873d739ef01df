//! Gradwire's transport between processes of one host, through shared memory.
//!
//! - *Finding each other.* A process listens on a Unix socket with a random name in the kernel's abstract
//!   namespace: no file, nothing left behind. Whether a peer is on the same host is decided by calling it.
//! - *Trusting each other.* Same user by the kernel's word, and both prove that they know the job's secret.
//! - *Memory.* Sealed memfd segments, passed as descriptors over the socket and closed once they are mapped.
//! - *Messages and notices* go through a ring of atomic words each way; `README.md` proves its ordering. A put is
//!   a copy into the peer's mapped region and a notice behind it, so everything arrives in the order of posting.
//! - *Revocation.* `deregister` puts other pages at the same address and raises a flag in a page behind the region, which
//!   peers look at before each put and get. What a late one writes goes to pages that nobody reads.
//! - *Sleep.* A peer rings our eventfd only when we have said that we sleep.
//! - *Death.* The kernel hangs up the socket. What the dead had written stays readable.
//!
//! # Threat model
//!
//! Whoever connects is of the same user and knows the secret. Even so, nothing it writes to the ring or the
//! socket is believed: lengths and indices are checked on private copies. But puts are placed by their origin:
//! a peer may write anything into any region that is not yet deregistered.
//!
//! # Not done yet
//!
//! Remote atomics, huge pages, and cross-memory attach for memory that was only registered. Such memory can be
//! the source of a put and the target of a get; it has no key, for no peer can reach it.

#[cfg(not(loom))]
mod address;
#[cfg(not(loom))]
mod bell;
#[cfg(not(loom))]
mod connections;
#[cfg(not(loom))]
mod frame;
#[cfg(not(loom))]
mod handshake;
#[cfg(not(loom))]
mod link;
#[cfg(not(loom))]
mod poller;
#[cfg(not(loom))]
mod proof;
#[cfg(not(loom))]
mod regions;
#[cfg(not(loom))]
mod remote;
mod ring;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod shm;
#[cfg(not(loom))]
mod socket;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(loom))]
pub use shm::{OpenError, Shm, ShmConfig};

/// The longest message, in bytes. At most a quarter of the smallest ring.
#[cfg(not(loom))]
const MAX_SEND: usize = 16 << 10;
/// The smallest and largest ring, in bytes.
#[cfg(not(loom))]
const MIN_RING: usize = 64 << 10;
#[cfg(not(loom))]
const MAX_RING: usize = 64 << 20;
/// How many regions one peer may have.
#[cfg(not(loom))]
const MAX_SEGMENTS: usize = 16 << 10;
