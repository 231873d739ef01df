//! One small error per verb. `code` is what the operating system or provider said, unchanged.

use std::time::Duration;

/// Why an operation could not be posted, or why a transport can no longer make progress.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection to this peer exists; connect first.
    #[error("the peer is not connected")]
    NotConnected,
    /// The peer is gone; a `PeerLost` event says why.
    #[error("the peer was lost")]
    PeerLost,
    /// More bytes than one operation carries; see `Limits`.
    #[error("{len} bytes are more than one operation carries (at most {max})")]
    TooLong {
        /// Bytes asked for.
        len: usize,
        /// The limit.
        max: usize,
    },
    /// The region is unknown or deregistered, or the range lies outside it.
    #[error("the range {offset}+{len} is outside a region of {region_len} bytes, or the region is gone")]
    OutOfRange {
        /// First byte.
        offset: usize,
        /// Bytes.
        len: usize,
        /// Size of the region; 0 when there is none.
        region_len: usize,
    },
    /// The transport lacks the capability.
    #[error("this transport cannot do that")]
    Unsupported,
    /// The system refused.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
}

/// Why a connection could not be tried.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The bytes are no address of this transport.
    #[error("not an address of this transport: {0}")]
    BadAddress(&'static str),
    /// Nobody can be reached there from here: another path must be tried.
    #[error("the address cannot be reached from here: system error {code}")]
    Unreachable {
        /// The raw code.
        code: i32,
    },
    /// The peer name is in use or was used before.
    #[error("the peer name was used before")]
    PeerReused,
    /// The address is our own.
    #[error("the address is our own")]
    SelfConnect,
    /// The process may not open more descriptors, or the system refused otherwise.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
}

/// Why memory could not be registered or allocated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The transport lacks the capability, or does not know this kind of memory.
    #[error("this transport cannot register such memory")]
    Unsupported,
    /// Too many regions, or too many bytes.
    #[error("the transport's limit of {limit} is reached")]
    Limit {
        /// The limit.
        limit: usize,
    },
    /// The system refused: no memory, no permission, no descriptor left.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
}

/// Why a peer's key was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The peer is not connected, or lost.
    #[error("the peer is not connected")]
    NotConnected,
    /// The key is not one that this peer exported, or no longer.
    #[error("the key is not one this peer exports")]
    BadKey,
    /// The key is plausible, but what it names has not arrived yet: call `progress`, then try again.
    #[error("what the key names has not arrived yet")]
    NotYet,
    /// The system refused.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
}

/// Why a posted operation failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FailReason {
    /// The peer was lost; its `PeerLost` event follows.
    #[error("the peer was lost")]
    PeerLost,
    /// A region of the operation was deregistered before the operation was done.
    #[error("the region was revoked")]
    Revoked,
    /// The system or the provider refused.
    #[error("system error {code}")]
    System {
        /// The raw code.
        code: i32,
    },
}

/// Why a peer is gone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LossReason {
    /// It could not be reached.
    #[error("it could not be reached (system error {code})")]
    Unreachable {
        /// The raw code.
        code: i32,
    },
    /// It closed the connection in good order.
    #[error("it closed the connection")]
    Closed,
    /// The connection broke: the process died, or its machine did.
    #[error("the connection broke (system error {code})")]
    Broken {
        /// The raw code; 0 when the end came without one.
        code: i32,
    },
    /// Nothing was heard from it.
    #[error("nothing was heard from it for {0:?}")]
    Silent(Duration),
    /// It did not prove that it belongs to the job, or speaks another protocol.
    #[error("it did not prove that it belongs to this job: {0}")]
    Refused(&'static str),
    /// It broke the protocol: a put outside a region, a malformed frame.
    #[error("it broke the protocol: {0}")]
    Protocol(&'static str),
}
