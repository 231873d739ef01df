//! Why bytes are no frame.

/// Why bytes are no frame of this protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// There are fewer bytes than the header takes, or than it announces.
    #[error("a frame of {expected} bytes ends after {found}")]
    Truncated {
        /// Bytes that there must be.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// More bytes than the header announces.
    #[error("a payload of {expected} bytes is followed by {excess} more")]
    Trailing {
        /// Bytes announced.
        expected: u64,
        /// Bytes beyond them.
        excess: u64,
    },
    /// More payload than the receiver takes here.
    #[error("a payload of {len} bytes is more than fits here (at most {max})")]
    TooLong {
        /// Bytes announced.
        len: u64,
        /// The limit.
        max: u64,
    },
    /// Not a frame of ours at all: somebody else is talking.
    #[error("not a Gradwire frame: it begins with \"{}\"", .0.escape_ascii())]
    Magic([u8; 4]),
    /// The sender speaks another version of the protocol.
    #[error(
        "the sender speaks version {found} of the protocol, this process version {}: run the same version of gradwire everywhere",
        super::FrameHeader::VERSION
    )]
    Version {
        /// The sender's.
        found: u8,
    },
    /// The header was damaged on its way.
    #[error("the header is damaged: its checksum is {found:08x}, but should be {expected:08x}")]
    Checksum {
        /// Of the bytes that arrived.
        expected: u32,
        /// What the frame says.
        found: u32,
    },
    /// The payload was damaged on its way.
    #[error("the payload is damaged: its checksum is {found:08x}, but should be {expected:08x}")]
    PayloadChecksum {
        /// Of the bytes that arrived.
        expected: u32,
        /// What the frame says.
        found: u32,
    },
    /// A kind that this version knows no meaning for.
    #[error("the frame's kind has the value {0}, which this version does not know")]
    Kind(u8),
    /// Flags that this version knows no meaning for.
    #[error("the frame's flags have bits {0:#06x}, which this version does not know")]
    Flags(u16),
}
