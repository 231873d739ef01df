//! What can be asked of a transport.

use crate::{Notice, Region, RemoteRegion, Token};

/// Whether an operation was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a full queue has taken nothing: post again after progress reported activity"]
pub enum Posted {
    /// Taken. An event with its token will say how it ended (a `send` ends silently).
    Queued,
    /// Back-pressure, not an error: nothing was taken.
    Full,
}

/// A one-sided write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put {
    /// Comes back in `Done` or `Failed`.
    pub token: Token,
    /// Bytes to move; at most `Limits::put`. May be 0: then only the notice travels.
    pub len: usize,
    /// Where from.
    pub source: Region,
    /// First byte in the source.
    pub source_offset: usize,
    /// Where to; names the peer as well.
    pub target: RemoteRegion,
    /// First byte in the target.
    pub target_offset: usize,
    /// Raised at the target once the bytes may be read there.
    pub notice: Option<Notice>,
}

/// A one-sided read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Get {
    /// Comes back in `Done` or `Failed`.
    pub token: Token,
    /// Bytes to move; at most `Limits::put`.
    pub len: usize,
    /// Where from.
    pub source: RemoteRegion,
    /// First byte in the source.
    pub source_offset: usize,
    /// Where to.
    pub target: Region,
    /// First byte in the target.
    pub target_offset: usize,
}

/// The number formats that remote atomics know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum AtomicKind {
    U32,
    U64,
    I32,
    I64,
    F32,
    F64,
}

/// What a remote atomic does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AtomicOperation {
    /// target += operand, old value fetched.
    FetchAdd,
    /// target = operand where target == compare, old value fetched.
    CompareSwap,
}

/// One remote atomic on one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Atomic {
    /// Comes back in `Done` or `Failed`.
    pub token: Token,
    /// What to do.
    pub operation: AtomicOperation,
    /// On which format.
    pub kind: AtomicKind,
    /// The operand, little endian, in the low bytes.
    pub operand: u64,
    /// The comparand of `CompareSwap`.
    pub compare: u64,
    /// Where.
    pub target: RemoteRegion,
    /// First byte in the target, a multiple of the element's size.
    pub target_offset: usize,
    /// Where the old value goes.
    pub fetched: Region,
    /// First byte there.
    pub fetched_offset: usize,
}

/// What `disconnect` does with what is still queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linger {
    /// Close now; queued messages may be lost.
    Drop,
    /// Hand queued messages to the system first, without blocking: `progress` closes once they are written
    /// or the peer is lost. An abort report leaves this way.
    Flush,
}
