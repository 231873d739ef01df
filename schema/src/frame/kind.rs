//! What frames are for.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// What a frame is for. The codes are part of the wire format and never change meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
#[non_exhaustive]
pub enum FrameKind {
    /// A rank's call signature, or that of all ranks it has heard of; small data may follow.
    Agree = 1,
    /// Data of one step of a collective, small enough to be sent unasked.
    Eager = 2,
    /// The target of a step opens its memory; the payload carries the region's key.
    Ready = 3,
    /// The receiver has room for more.
    Credit = 4,
    /// The signatures differ: the payload is a [`MismatchTable`](crate::MismatchTable).
    Mismatch = 5,
    /// The layouts differ: the payload is a [`TensorManifest`](crate::control::TensorManifest).
    Manifest = 6,
    /// A point-to-point message, with its data.
    Message = 7,
    /// A point-to-point message too long to be sent unasked is waiting; `offset` is its length.
    RequestToSend = 8,
    /// The receiver of a long message opens its memory; the payload carries the region's key.
    ReadyToReceive = 9,
    /// Somebody gives up: the payload is an [`AbortReport`](crate::control::AbortReport).
    Abort = 10,
    /// Whom are you waiting for?
    Probe = 11,
    /// The answer: the payload lists ranks.
    ProbeReply = 12,
    /// The sender leaves in good order and has nothing more to say.
    Goodbye = 13,
    /// An access to a window, or a word about one: see [`WindowRequest`](crate::WindowRequest).
    Window = 14,
    /// The owner's answer: see [`WindowReply`](crate::WindowReply).
    WindowReply = 15,
}

impl FrameKind {
    /// All of them, by code.
    pub const ALL: [Self; 15] = [
        Self::Agree,
        Self::Eager,
        Self::Ready,
        Self::Credit,
        Self::Mismatch,
        Self::Manifest,
        Self::Message,
        Self::RequestToSend,
        Self::ReadyToReceive,
        Self::Abort,
        Self::Probe,
        Self::ProbeReply,
        Self::Goodbye,
        Self::Window,
        Self::WindowReply,
    ];

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// How to read a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct FrameFlags(u16);

impl FrameFlags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// The last four bytes of the payload are the CRC32C of those before.
    pub const PAYLOAD_CRC: Self = Self(1);

    const KNOWN: u16 = Self::PAYLOAD_CRC.0;

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits that this version knows no meaning for.
    pub(super) const fn unknown(self) -> u16 {
        self.0 & !Self::KNOWN
    }
}
