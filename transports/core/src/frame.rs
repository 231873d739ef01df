//! Frames for transports over byte streams: a header of 64 bytes, then as many bytes of payload as it says.
//!
//! | bytes | field | meaning |
//! | --- | --- | --- |
//! | 0..4 | magic | `GWTF` |
//! | 4..6 | version | 1 |
//! | 6 | kind | 1 handshake, 2 message, 3 put, 4 heartbeat, 5 bye |
//! | 7 | flags | bit 0: the put carries a notice |
//! | 8..12 | label | the handshake's step, the message's tag or the put's notice |
//! | 12..16 | | zero |
//! | 16..24 | length | bytes of payload that follow |
//! | 24..32 | offset | put: first byte in the target region |
//! | 32..64 | key | put: the target region's key |
//!
//! Numbers are little endian. What a kind does not use is zero, and that is checked, so that each frame has exactly
//! one form. There is no checksum: the stream below has one.
//!
//! [`Frame::decode`] looks at 64 bytes, allocates nothing and accepts no length above the transport's own
//! [`Limits`], so that a receiver may reserve what a header announces. Whether a put may go where it wants to
//! is for [`Regions::resolve`](crate::region::Regions::resolve) to say.
//!
//! A put whose source may be revoked half-way is best sent as two frames, the bytes without a notice and then an
//! empty put with it: a sender that has lost its source fills up the first frame and leaves out the second, and
//! the target keeps its place in the stream without ever being told to read the filling.

use crate::{Limits, Notice, RegionKey, Tag};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One header, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Frame {
    /// A step of making acquaintance; what the payload says is the transport's own business.
    Handshake {
        /// Which step.
        step: u32,
        /// Bytes of payload, at most [`Frame::MAX_HANDSHAKE`].
        len: usize,
    },
    /// A message.
    Message {
        /// Handed to the receiver unread.
        tag: Tag,
        /// Bytes of payload, at most [`Limits::send`].
        len: usize,
    },
    /// Bytes for a region of the receiver.
    Put {
        /// To be raised when all bytes are in place.
        notice: Option<Notice>,
        /// Which region.
        key: RegionKey,
        /// First byte in it.
        offset: u64,
        /// Bytes of payload, at most [`Limits::put`].
        len: usize,
    },
    /// A sign of life.
    Heartbeat,
    /// The last frame: the sender closes in good order.
    Bye,
}

/// Why 64 bytes are no header. The sender is no Gradwire process, speaks another version, or is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The first four bytes are wrong.
    #[error("not a frame: the magic is {found:02x?}")]
    Magic {
        /// What stands there.
        found: [u8; 4],
    },
    /// Another version of the format.
    #[error("version {found} of the frame format, not {}", Frame::VERSION)]
    Version {
        /// Which.
        found: u16,
    },
    /// No such kind.
    #[error("unknown kind of frame: {found}")]
    Kind {
        /// Which.
        found: u8,
    },
    /// A flag that this kind does not have.
    #[error("unknown flags for a {kind} frame: {found:#04x}")]
    Flags {
        /// Of what kind the frame is.
        kind: &'static str,
        /// All flags.
        found: u8,
    },
    /// A field that this kind does not use is not zero.
    #[error("the {field} of a {kind} frame is not zero")]
    NotZero {
        /// Of what kind the frame is.
        kind: &'static str,
        /// Which field.
        field: &'static str,
    },
    /// More payload than any such frame may carry.
    #[error("a {kind} frame of {len} bytes (at most {max})")]
    TooLong {
        /// Of what kind the frame is.
        kind: &'static str,
        /// Bytes announced.
        len: u64,
        /// The limit.
        max: usize,
    },
}

impl Frame {
    /// The size of a header in bytes.
    pub const HEADER_LEN: usize = 64;
    /// The most payload of a handshake frame, in bytes: all that a stranger may make us keep.
    pub const MAX_HANDSHAKE: usize = 1024;
    /// The version of the format.
    pub const VERSION: u16 = 1;

    /// The header.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::HEADER_LEN] {
        let mut header = Header {
            magic: Header::MAGIC,
            version: Self::VERSION.into(),
            kind: self.kind().code(),
            flags: 0,
            label: 0.into(),
            zero: 0.into(),
            len: (self.payload() as u64).into(),
            offset: 0.into(),
            key: [0; RegionKey::LEN],
        };
        match *self {
            Self::Handshake { step, .. } => header.label = step.into(),
            Self::Message { tag, .. } => header.label = tag.0.into(),
            Self::Put { notice, key, offset, .. } => {
                header.key = *key.as_bytes();
                header.offset = offset.into();
                if let Some(notice) = notice {
                    header.flags = Header::HAS_NOTICE;
                    header.label = notice.0.into();
                }
            }
            Self::Heartbeat | Self::Bye => {}
        }
        zerocopy::transmute!(header)
    }

    /// Takes a header apart.
    ///
    /// # Errors
    ///
    /// See [`FrameError`]; after any of them the place in the stream is lost.
    pub fn decode(bytes: &[u8; Self::HEADER_LEN], limits: &Limits) -> Result<Self, FrameError> {
        let header: Header = zerocopy::transmute!(*bytes);
        if header.magic != Header::MAGIC {
            return Err(FrameError::Magic { found: header.magic });
        }
        if header.version != Self::VERSION {
            return Err(FrameError::Version { found: header.version.get() });
        }
        let kind = Kind::from_code(header.kind).ok_or(FrameError::Kind { found: header.kind })?;
        header.check_unused(kind)?;
        let label = header.label.get();
        Ok(match kind {
            Kind::Handshake => {
                Self::Handshake { step: label, len: header.payload(kind, Self::MAX_HANDSHAKE)? }
            }
            Kind::Message => Self::Message { tag: Tag(label), len: header.payload(kind, limits.send)? },
            Kind::Put => Self::Put {
                notice: (header.flags == Header::HAS_NOTICE).then_some(Notice(label)),
                key: RegionKey::from_bytes(header.key),
                offset: header.offset.get(),
                len: header.payload(kind, limits.put)?,
            },
            Kind::Heartbeat => Self::Heartbeat,
            Kind::Bye => Self::Bye,
        })
    }

    /// How many bytes follow the header.
    #[must_use]
    pub const fn payload(&self) -> usize {
        match *self {
            Self::Handshake { len, .. } | Self::Message { len, .. } | Self::Put { len, .. } => len,
            Self::Heartbeat | Self::Bye => 0,
        }
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Handshake { .. } => Kind::Handshake,
            Self::Message { .. } => Kind::Message,
            Self::Put { .. } => Kind::Put,
            Self::Heartbeat => Kind::Heartbeat,
            Self::Bye => Kind::Bye,
        }
    }
}

impl FrameError {
    /// The words for [`LossReason::Refused`](crate::LossReason::Refused) or
    /// [`LossReason::Protocol`](crate::LossReason::Protocol). The error itself says more.
    #[must_use]
    pub const fn offence(self) -> &'static str {
        match self {
            Self::Magic { .. } => "what it sent is no frame",
            Self::Version { .. } => "it speaks another version of the frame format",
            Self::Kind { .. } => "a frame of unknown kind",
            Self::Flags { .. } => "a frame with unknown flags",
            Self::NotZero { .. } => "a frame with data where there is none",
            Self::TooLong { .. } => "a frame longer than any may be",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Handshake,
    Message,
    Put,
    Heartbeat,
    Bye,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Handshake => 1,
            Self::Message => 2,
            Self::Put => 3,
            Self::Heartbeat => 4,
            Self::Bye => 5,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Handshake,
            2 => Self::Message,
            3 => Self::Put,
            4 => Self::Heartbeat,
            5 => Self::Bye,
            _ => return None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Message => "message",
            Self::Put => "put",
            Self::Heartbeat => "heartbeat",
            Self::Bye => "bye",
        }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 4],
    version: U16,
    kind: u8,
    flags: u8,
    label: U32,
    zero: U32,
    len: U64,
    offset: U64,
    key: [u8; RegionKey::LEN],
}

impl Header {
    const MAGIC: [u8; 4] = *b"GWTF";
    const HAS_NOTICE: u8 = 1;

    /// Whether all that `kind` does not use is zero.
    fn check_unused(&self, kind: Kind) -> Result<(), FrameError> {
        let is_put = kind == Kind::Put;
        let has_notice = is_put && self.flags == Self::HAS_NOTICE;
        if self.flags != 0 && !has_notice {
            return Err(FrameError::Flags { kind: kind.name(), found: self.flags });
        }
        let has_label = has_notice || matches!(kind, Kind::Handshake | Kind::Message);
        let has_payload = !matches!(kind, Kind::Heartbeat | Kind::Bye);
        let unused = [
            ("label", !has_label && self.label != 0),
            ("reserved field", self.zero != 0),
            ("length", !has_payload && self.len != 0),
            ("offset", !is_put && self.offset != 0),
            ("key", !is_put && self.key != [0; RegionKey::LEN]),
        ];
        match unused.into_iter().find(|(_, wrong)| *wrong) {
            Some((field, _)) => Err(FrameError::NotZero { kind: kind.name(), field }),
            None => Ok(()),
        }
    }

    fn payload(&self, kind: Kind, max: usize) -> Result<usize, FrameError> {
        let len = self.len.get();
        usize::try_from(len).ok().filter(|len| *len <= max).ok_or(FrameError::TooLong {
            kind: kind.name(),
            len,
            max,
        })
    }
}

#[cfg(test)]
mod tests;
