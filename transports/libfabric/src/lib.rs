//! RDMA transport of Gradwire: puts, gets, atomics and messages over whatever provider libfabric has.
//!
//! [`Libfabric`] is a [`Transport`](gradwire_transport::Transport) over one reliable-datagram endpoint. The library is
//! loaded when the first endpoint is opened; without it, or without a fitting provider, opening ends in an [`OpenError`]
//! that says so. Programs need neither headers nor a C compiler to build, and run with every libfabric from 1.17 on.
//!
//! # Two paths to each peer
//!
//! Endpoints of this kind have no connections: they do not say who is at the other end, nor that it has died. So each peer is
//! met over a TCP connection first ([`gradwire_transport_tcp`]), on which both sides prove that they know the job's secret,
//! which ends when a process ends and whose heartbeats find out about a host that vanished. Over it the sides exchange where
//! they are on the fabric, and numbers that every message there has to show. No data travels on it.
//!
//! A peer is connected once both sides have written to the other and been sent a message on the fabric: what the library
//! lists as reachable is believed when it was reached.
//!
//! # How bytes travel
//!
//! Messages are sent from buffers of the library, or injected when they are short, and are received into buffers that stand
//! ready. A receiver grants each sender so many, and again as it consumes them: no queue is overrun. Puts are RMA writes whose
//! completion data carry the notice and its sender, 64 bits together. Where the provider has only 32, the notice follows as a
//! message after the bytes have been delivered. What the provider refuses for now (`-FI_EAGAIN`) waits here, in order.
//!
//! # Whose memory
//!
//! A provider cannot be made to let go of memory at once: it lacks `REVOKE`. So it only ever gets memory of the library's
//! own. Bytes of the caller's registered memory are copied to such memory when a put is posted, or from it when a get has
//! ended; peers can reach what was allocated and nothing else. Memory that is deregistered stays registered until all peers
//! have said that they let go of it, so that a late write breaks no connection and lands in nobody's memory. Each key is
//! signed by its owner, and tried by reading a byte before the first operation uses it.
//!
//! # What it trusts
//!
//! On the fabric the network card, or the provider's software, checks keys and ranges, not this crate. A process that was let
//! into the job can write where keys let it. Providers over shared memory do not check at all, and are used only when named.
//!
//! # What it does not do yet
//!
//! One card per process, whichever comes first. No memory of devices: registering it is an error. The caller's memory is
//! always copied, however long the put.

mod address;
mod atomics;
mod config;
mod domain;
mod error;
mod flight;
mod frame;
mod handle;
mod key;
mod lifecycle;
mod link;
mod memory;
mod pool;
mod progress;
mod provider;
mod regions;
mod remotes;
mod sleep;
mod sys;
mod transport;
mod wire;

pub use config::LibfabricConfig;
pub use error::OpenError;
pub use transport::Libfabric;
