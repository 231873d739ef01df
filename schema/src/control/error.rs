//! Why bytes are no control message.

use crate::UnknownCode;

/// Why bytes are no control message of this version.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// More or fewer bytes than announced.
    #[error("a control message of {expected} bytes has {found}")]
    Length {
        /// Bytes that there must be, the prefix included.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// More bytes than the receiver takes.
    #[error("a control message of {len} bytes is more than fits here (at most {max})")]
    TooLong {
        /// Bytes announced.
        len: u64,
        /// The limit.
        max: u64,
    },
    /// The message was damaged on its way.
    #[error("a control message is damaged: its checksum is {found:08x}, but should be {expected:08x}")]
    Checksum {
        /// Of the bytes that arrived.
        expected: u32,
        /// What the message says.
        found: u32,
    },
    /// Another protocol, or another version of this one.
    #[error(
        "a control message is marked \"{}\" and not \"{}\": run the same version of gradwire everywhere",
        .0.escape_ascii(), super::wire::MESSAGE_IDENTIFIER
    )]
    Identifier([u8; 4]),
    /// Not a well-formed FlatBuffer of this schema.
    #[error("a control message is malformed: {0}")]
    Malformed(String),
    /// A message of another kind.
    #[error("a control message is a {found} and not a {expected}")]
    Unexpected {
        /// The kind that was expected.
        expected: &'static str,
        /// The kind that came.
        found: String,
    },
    /// A list or text is longer than it may be.
    #[error("`{field}` has {count} entries or bytes (at most {max})")]
    TooMany {
        /// Which field.
        field: &'static str,
        /// How many it has.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// Fields share bytes, so that the message would grow when read.
    #[error("`{field}` holds more than arrived: fields of a control message may not share bytes")]
    Shared {
        /// The field that was too much.
        field: &'static str,
    },
    /// A code that this version knows no meaning for.
    #[error(transparent)]
    Unknown(#[from] UnknownCode),
    /// A table of peers that is not complete or not in order.
    #[error("entry {index} of a peer table says rank {rank} of {size}, in a table of {entries}")]
    Rank {
        /// Which entry.
        index: usize,
        /// Its rank.
        rank: u32,
        /// Its size of the job.
        size: u32,
        /// How many entries there are.
        entries: usize,
    },
}
