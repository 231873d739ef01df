//! What peers tell each other, on the fabric and beside it.
//!
//! Every message on the fabric begins with a [`Head`]. It shows the number that its receiver gave its sender over the
//! connection on which both have proven who they are; whatever does not show it is thrown away.

use gradwire_transport::{RegionKey, Tag};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a message on the fabric.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Head {
    /// The receiver's slot for the sender, and the proof that the sender was told so.
    pub(crate) nonce: U64,
    pub(crate) slot: U32,
    pub(crate) kind: U32,
    /// The number of this message, of those that use credit.
    pub(crate) sequence: U32,
    /// How many of the receiver's messages the sender has consumed, ever.
    pub(crate) consumed: U32,
    /// The message's tag, or the notice.
    pub(crate) label: U32,
    pub(crate) zero: U32,
}

impl Head {
    pub(crate) const LEN: usize = size_of::<Self>();
}

/// What a message on the fabric is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The first one: the path works.
    Hello = 1,
    /// The caller's.
    Message = 2,
    /// The notice of a put that has been delivered, where completions carry too few bits.
    Notice = 3,
    /// Only tells what was consumed.
    Credit = 4,
}

impl Kind {
    pub(crate) fn of(head: &Head) -> Option<Self> {
        [Self::Hello, Self::Message, Self::Notice, Self::Credit]
            .into_iter()
            .find(|kind| *kind as u32 == head.kind.get() && head.zero.get() == 0)
    }

    /// Whether its receiver must have granted it.
    pub(crate) fn uses_credit(self) -> bool {
        matches!(self, Self::Message | Self::Notice)
    }
}

/// The number that a write of a peer carries: the target's slot for the peer, a part of the nonce that was given to it,
/// and the notice.
pub(crate) fn completion_data(slot: u32, nonce: u64, notice: u32) -> u64 {
    u64::from(slot) << 48 | (nonce & 0xffff) << 32 | u64::from(notice)
}

/// Slot, part of the nonce, notice.
pub(crate) fn split_completion_data(data: u64) -> (u32, u64, u32) {
    ((data >> 48) as u32, data >> 32 & 0xffff, data as u32)
}

/// What is told over the control connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Control {
    /// How to reach the sender on the fabric, once.
    Introduction(Box<Introduction>),
    /// The sender has found the path to work both ways.
    Ready,
    /// The sender leaves. It has sent so many messages and so many notices.
    Bye { messages: u32, notices: u64 },
    /// The receiver of a `Bye` has them all.
    Heard,
    /// The sender's key opens nothing any more.
    Withdraw(RegionKey),
    /// The sender will not use the receiver's key any more.
    Withdrawn(RegionKey),
}

/// How to reach an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Introduction {
    /// What to show with each message.
    pub(crate) slot: u32,
    pub(crate) nonce: u64,
    /// By which the sender's keys are told from forged ones.
    pub(crate) secret: [u8; 32],
    /// Memory to try the path with.
    pub(crate) board: RegionKey,
    /// The provider's name of the endpoint.
    pub(crate) name: Vec<u8>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WireIntroduction {
    nonce: U64,
    slot: U32,
    secret: [u8; 32],
    board: [u8; RegionKey::LEN],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct WireBye {
    notices: U64,
    messages: U32,
}

impl Control {
    pub(crate) fn encode(&self) -> (Tag, Vec<u8>) {
        match self {
            Self::Introduction(introduction) => {
                let wire = WireIntroduction {
                    nonce: introduction.nonce.into(),
                    slot: introduction.slot.into(),
                    secret: introduction.secret,
                    board: *introduction.board.as_bytes(),
                };
                (Tag(1), [wire.as_bytes(), &introduction.name].concat())
            }
            Self::Ready => (Tag(2), Vec::new()),
            Self::Bye { messages, notices } => {
                let wire = WireBye { notices: (*notices).into(), messages: (*messages).into() };
                (Tag(3), wire.as_bytes().to_vec())
            }
            Self::Heard => (Tag(4), Vec::new()),
            Self::Withdraw(key) => (Tag(5), key.as_bytes().to_vec()),
            Self::Withdrawn(key) => (Tag(6), key.as_bytes().to_vec()),
        }
    }

    /// `None` for what no honest peer says.
    pub(crate) fn decode(tag: Tag, bytes: &[u8]) -> Option<Self> {
        let key = || Some(RegionKey::from_bytes(bytes.try_into().ok()?));
        match tag.0 {
            1 => {
                let (wire, name) = WireIntroduction::ref_from_prefix(bytes).ok()?;
                Some(Self::Introduction(Box::new(Introduction {
                    slot: wire.slot.get(),
                    nonce: wire.nonce.get(),
                    secret: wire.secret,
                    board: RegionKey::from_bytes(wire.board),
                    name: name.to_vec(),
                })))
            }
            2 if bytes.is_empty() => Some(Self::Ready),
            3 => {
                let wire = WireBye::ref_from_bytes(bytes).ok()?;
                Some(Self::Bye { messages: wire.messages.get(), notices: wire.notices.get() })
            }
            4 if bytes.is_empty() => Some(Self::Heard),
            5 => key().map(Self::Withdraw),
            6 => key().map(Self::Withdrawn),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_survive_the_journey_and_nothing_else_does() {
        let key = RegionKey::from_bytes(std::array::from_fn(|byte| byte as u8));
        let introduction = Introduction {
            slot: 7,
            nonce: 0x0102_0304_0506_0708,
            secret: [9; 32],
            board: key,
            name: b"fi_shm://1".to_vec(),
        };
        for message in [
            Control::Introduction(Box::new(introduction)),
            Control::Ready,
            Control::Bye { messages: 3, notices: 1 << 40 },
            Control::Heard,
            Control::Withdraw(key),
            Control::Withdrawn(key),
        ] {
            let (tag, bytes) = message.encode();
            assert_eq!(Control::decode(tag, &bytes), Some(message.clone()));
            if !matches!(message, Control::Introduction(_)) {
                assert_eq!(Control::decode(tag, &[&bytes[..], &[0]].concat()), None);
            }
            assert_eq!(Control::decode(Tag(tag.0 + 6), &bytes), None);
        }
        assert_eq!(Control::decode(Tag(1), &[0; 75]), None);
    }

    #[test]
    fn completion_data_comes_apart_again() {
        let data = completion_data(0xfedc, 0x1111_2222_3333_4444, 0x89ab_cdef);
        assert_eq!(split_completion_data(data), (0xfedc, 0x4444, 0x89ab_cdef));
    }
}
