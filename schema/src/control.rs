//! The control plane: what is said rarely, and must stay readable for older and newer versions.
//!
//! Messages are FlatBuffers (`schema/fbs/control.fbs`) behind eight bytes, the length and the CRC32C of what follows.
//! These types own their data: decoding checks length, checksum, file identifier and structure, in this order, and
//! copies no more than arrived.

mod abort;
mod envelope;
mod error;
#[rustfmt::skip]
#[allow(
    clippy::all, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block, clippy::use_self,
    clippy::missing_safety_doc, clippy::semicolon_if_nothing_returned, missing_docs, missing_debug_implementations,
    unsafe_code, unused, unreachable_pub, elided_lifetimes_in_paths, unused_qualifications,
    reason = "written by flatc"
)]
#[path = "control/generated/control_generated.rs"]
mod generated;
mod hello;
mod manifest;
mod reader;

pub use abort::{AbortCause, AbortReport};
pub use envelope::{MAX_MESSAGE, PREFIX, announced_len};
pub use error::ControlError;
pub use hello::{Hello, PeerTable, TransportAddress};
pub use manifest::{TensorField, TensorManifest, WrongLengths};

use generated::gradwire::control as wire;

/// The most that a message may hold. Whoever encodes keeps to it: a message that does not is refused by all peers.
pub mod limits {
    /// Bytes of a job's, host's, version's or transport's name.
    pub const NAME: usize = 256;
    /// Bytes of a report's text, or of a tensor's or struct's name.
    pub const TEXT: usize = 4096;
    /// Bytes of a proof.
    pub const PROOF: usize = 64;
    /// Bytes of an address.
    pub const ADDRESS: usize = 1024;
    /// Addresses of a process.
    pub const ADDRESSES: usize = 16;
    /// Words of a set of processors.
    pub const PROCESSORS: usize = 256;
    /// Ranks of a job.
    pub const RANKS: usize = 1 << 20;
    /// Tensors of a struct.
    pub const FIELDS: usize = 1 << 20;
    /// Extents of a tensor.
    pub const EXTENTS: usize = 64;
}

#[cfg(test)]
mod tests;
