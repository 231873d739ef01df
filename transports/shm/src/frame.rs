//! Control frames: what travels over the socket beside the ring. One frame is one packet of fixed size.

use crate::address::{Name, VERSION};
use zerocopy::byteorder::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A proof of knowing the job's secret, or a challenge to give one.
pub(crate) type Proof = [u8; 32];

/// What one side tells the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// First word of the one who dialled: who it is, whom it wants, and its challenge.
    Hello { from: Name, to: Name, challenge: Proof },
    /// The answer of the one who was dialled: its proof and its challenge.
    Challenge { challenge: Proof, proof: Proof },
    /// The dialler's proof. Its inbox (of `capacity` bytes) and its bell come along.
    Proof { proof: Proof, capacity: u64 },
    /// The other's inbox and bell. Both sides are connected.
    Welcome { capacity: u64 },
    /// A proof was wrong; the connection closes.
    Refused,
    /// A new region; its segment comes along.
    Region { id: u64, len: u64 },
    /// The region is no more: whatever is written there now, nobody reads.
    Revoked { id: u64 },
    /// The connection closes in good order.
    Goodbye,
}

/// Every frame has this form; what a kind does not use is zero.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Default)]
#[repr(C)]
pub(crate) struct Packet {
    magic: [u8; 4],
    version: u8,
    kind: u8,
    zero: [u8; 10],
    first: U64,
    second: U64,
    left: Proof,
    right: Proof,
}

impl Packet {
    pub(crate) const LEN: usize = size_of::<Self>();
    const MAGIC: [u8; 4] = *b"GwSh";
}

impl Frame {
    /// How many descriptors travel with it.
    pub(crate) fn descriptors(&self) -> usize {
        match self {
            Self::Proof { .. } | Self::Welcome { .. } => 2,
            Self::Region { .. } => 1,
            _ => 0,
        }
    }

    pub(crate) fn encode(&self) -> Packet {
        let empty = Packet { magic: Packet::MAGIC, version: VERSION, ..Packet::default() };
        match *self {
            Self::Hello { from, to, challenge } => {
                let mut names = [0; 32];
                names[..Name::LEN].copy_from_slice(&from.0);
                names[Name::LEN..].copy_from_slice(&to.0);
                Packet { kind: 1, left: names, right: challenge, ..empty }
            }
            Self::Challenge { challenge, proof } => {
                Packet { kind: 2, left: challenge, right: proof, ..empty }
            }
            Self::Proof { proof, capacity } => {
                Packet { kind: 3, left: proof, first: capacity.into(), ..empty }
            }
            Self::Welcome { capacity } => Packet { kind: 4, first: capacity.into(), ..empty },
            Self::Refused => Packet { kind: 5, ..empty },
            Self::Region { id, len } => Packet { kind: 6, first: id.into(), second: len.into(), ..empty },
            Self::Revoked { id } => Packet { kind: 7, first: id.into(), ..empty },
            Self::Goodbye => Packet { kind: 8, ..empty },
        }
    }

    /// The frame in `bytes`; `None` unless every byte is as [`encode`](Self::encode) writes it.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let packet = Packet::read_from_bytes(bytes).ok()?;
        let frame = match packet.kind {
            1 => Self::Hello {
                from: Name(packet.left.first_chunk().copied()?),
                to: Name(packet.left.last_chunk().copied()?),
                challenge: packet.right,
            },
            2 => Self::Challenge { challenge: packet.left, proof: packet.right },
            3 => Self::Proof { proof: packet.left, capacity: packet.first.get() },
            4 => Self::Welcome { capacity: packet.first.get() },
            5 => Self::Refused,
            6 => Self::Region { id: packet.first.get(), len: packet.second.get() },
            7 => Self::Revoked { id: packet.first.get() },
            8 => Self::Goodbye,
            _ => return None,
        };
        (frame.encode().as_bytes() == bytes).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Packet};
    use crate::address::Name;
    use zerocopy::IntoBytes;

    fn examples() -> [Frame; 8] {
        [
            Frame::Hello { from: Name([1; 16]), to: Name([2; 16]), challenge: [3; 32] },
            Frame::Challenge { challenge: [4; 32], proof: [5; 32] },
            Frame::Proof { proof: [6; 32], capacity: 7 },
            Frame::Welcome { capacity: 8 },
            Frame::Refused,
            Frame::Region { id: 9, len: 10 },
            Frame::Revoked { id: 11 },
            Frame::Goodbye,
        ]
    }

    #[test]
    fn frames_survive_the_way_through_bytes() {
        for frame in examples() {
            assert_eq!(Frame::decode(frame.encode().as_bytes()), Some(frame));
        }
    }

    #[test]
    fn what_encode_does_not_write_is_refused() {
        for frame in examples() {
            let packet = frame.encode();
            let bytes = packet.as_bytes();
            for len in 0..Packet::LEN {
                assert_eq!(Frame::decode(&bytes[..len]), None, "{frame:?} cut to {len}");
            }
            assert_eq!(Frame::decode(&[bytes, &[0]].concat()), None);
            for position in 0..16 {
                let mut changed = bytes.to_vec();
                changed[position] ^= 0x10;
                assert_eq!(Frame::decode(&changed), None, "{frame:?} with byte {position} changed");
            }
        }
        assert_eq!(Frame::decode(&[0; Packet::LEN]), None);
    }
}
