//! The fixed header in front of everything that crosses a transport.
//!
//! Sixty-four bytes, little endian, without padding:
//!
//! | offset | bytes | field |
//! | --- | --- | --- |
//! | 0 | 4 | magic, `GRDW` |
//! | 4 | 1 | [version](FrameHeader::VERSION) |
//! | 5 | 1 | [kind](FrameKind) |
//! | 6 | 2 | [flags](FrameFlags) |
//! | 8 | 4 | communicator |
//! | 12 | 4 | epoch |
//! | 16 | 8 | sequence |
//! | 24 | 8 | hash of the call's signature |
//! | 32 | 8 | bytes of payload that follow |
//! | 40 | 8 | offset |
//! | 48 | 4 | source rank |
//! | 52 | 4 | tag |
//! | 56 | 4 | slot |
//! | 60 | 4 | CRC32C of the 60 bytes before |
//!
//! Bytes that a peer can still write (a slot in shared memory) are copied to private memory before they are read
//! as a header.

mod error;
mod kind;

pub use error::FrameError;
pub use kind::{FrameFlags, FrameKind};

use crate::crc::crc32c;
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes, transmute};

#[cfg(target_endian = "big")]
compile_error!(
    "Gradwire's wire format is little endian, and is read in place: big-endian targets are refused"
);

/// What a frame is and which call it belongs to. The payload follows.
///
/// Make one with [`new`](Self::new), set what the kind needs, and [`encode`](Self::encode) it. What a kind does not
/// need stays 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FrameHeader {
    magic: [u8; 4],
    version: u8,
    /// What the frame is for.
    pub kind: FrameKind,
    /// How to read it.
    pub flags: FrameFlags,
    /// The communicator, by the number its members agreed on.
    pub communicator: u32,
    /// The incarnation of the job: frames of another one are refused.
    pub epoch: u32,
    /// The how-manieth collective call on the communicator, from 0.
    pub sequence: u64,
    /// The hash of the call's [`CallSignature`](crate::CallSignature).
    pub signature: u64,
    /// Bytes of payload, the payload's own checksum included.
    pub payload_len: u64,
    /// Where in the call's data the payload belongs, in bytes; or what else the kind says.
    pub offset: u64,
    /// The sender's rank in the communicator.
    pub source: u32,
    /// The label of a point-to-point message; the step of a collective one.
    pub tag: u32,
    /// The slot under which the sender or the receiver keeps the transfer.
    pub slot: u32,
    /// Set while encoding; 0 in a header that is not encoded.
    crc: u32,
}

const _: () = assert!(size_of::<FrameHeader>() == FrameHeader::LEN);
const _: () = assert!(std::mem::offset_of!(FrameHeader, crc) == FrameHeader::LEN - 4);

impl FrameHeader {
    /// Bytes of an encoded header.
    pub const LEN: usize = 64;
    /// The first bytes of every frame.
    pub const MAGIC: [u8; 4] = *b"GRDW";
    /// The version of the format. Every change of a byte's meaning changes it.
    pub const VERSION: u8 = 1;

    /// A header in which all fields but the kind are 0.
    #[must_use]
    pub const fn new(kind: FrameKind) -> Self {
        Self {
            magic: Self::MAGIC,
            version: Self::VERSION,
            kind,
            flags: FrameFlags::NONE,
            communicator: 0,
            epoch: 0,
            sequence: 0,
            signature: 0,
            payload_len: 0,
            offset: 0,
            source: 0,
            tag: 0,
            slot: 0,
            crc: 0,
        }
    }

    /// The bytes to send, sealed with their checksum.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes: [u8; Self::LEN] = transmute!(*self);
        let crc = crc32c(&bytes[..Self::LEN - 4]);
        bytes[Self::LEN - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header at the front of `bytes`, at any alignment, and hands back what follows it.
    ///
    /// Whether what follows is the whole payload is for the caller to say: see [`payload`](Self::payload).
    ///
    /// # Errors
    ///
    /// [`FrameError`], by the first thing that is wrong.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let Some((header, rest)) = bytes.split_first_chunk::<{ Self::LEN }>() else {
            return Err(FrameError::Truncated { expected: Self::LEN as u64, found: bytes.len() as u64 });
        };
        Ok((Self::decode(header)?, rest))
    }

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`FrameError`], by the first thing that is wrong.
    #[inline]
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<Self, FrameError> {
        let [m0, m1, m2, m3, version, kind, .., c0, c1, c2, c3] = *bytes;
        if [m0, m1, m2, m3] != Self::MAGIC {
            return Err(FrameError::Magic([m0, m1, m2, m3]));
        }
        if version != Self::VERSION {
            return Err(FrameError::Version { found: version });
        }
        let (found, expected) = (u32::from_le_bytes([c0, c1, c2, c3]), crc32c(&bytes[..Self::LEN - 4]));
        if found != expected {
            return Err(FrameError::Checksum { expected, found });
        }
        // Only the kind has bytes without a meaning.
        let mut header = Self::try_read_from_bytes(bytes).map_err(|_| FrameError::Kind(kind))?;
        if header.flags.unknown() != 0 {
            return Err(FrameError::Flags(header.flags.unknown()));
        }
        header.crc = 0;
        Ok(header)
    }

    /// Bytes of payload, if the receiver takes that many: ask before making room.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooLong`] above `max`.
    pub fn payload_len_within(&self, max: usize) -> Result<usize, FrameError> {
        match usize::try_from(self.payload_len) {
            Ok(len) if len <= max => Ok(len),
            _ => Err(FrameError::TooLong { len: self.payload_len, max: max as u64 }),
        }
    }

    /// The payload in the bytes that followed the header, without its checksum, which is checked where there is one.
    ///
    /// # Errors
    ///
    /// When `rest` is not exactly as long as announced, or the payload is damaged.
    pub fn payload<'a>(&self, rest: &'a [u8]) -> Result<&'a [u8], FrameError> {
        let (expected, found) = (self.payload_len, rest.len() as u64);
        if found < expected {
            return Err(FrameError::Truncated { expected, found });
        }
        if found > expected {
            return Err(FrameError::Trailing { expected, excess: found - expected });
        }
        if !self.flags.contains(FrameFlags::PAYLOAD_CRC) {
            return Ok(rest);
        }
        let Some((payload, crc)) = rest.split_last_chunk::<4>() else {
            return Err(FrameError::Truncated { expected: 4, found });
        };
        let (found, expected) = (u32::from_le_bytes(*crc), crc32c(payload));
        if found == expected { Ok(payload) } else { Err(FrameError::PayloadChecksum { expected, found }) }
    }
}

#[cfg(test)]
mod tests;
