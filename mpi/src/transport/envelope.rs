//! What stands before each frame: of which connection it is. MPI itself says from which rank it comes.

use zerocopy::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Who sends to whom, and how far it has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Envelope {
    /// The tag under which the sender receives.
    pub(super) tag: i32,
    /// The sender's number for the connection.
    pub(super) connection: u64,
    /// The receiver's number for it; 0 while the sender does not know that.
    pub(super) to: u64,
    /// How many frames with content the sender has taken from the receiver, modulo 2^32.
    pub(super) consumed: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 4],
    tag: I32,
    connection: U64,
    to: U64,
    consumed: U32,
    zero: U32,
}

impl Envelope {
    pub(super) const LEN: usize = size_of::<Layout>();
    const MAGIC: [u8; 4] = *b"GWMP";

    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        zerocopy::transmute!(Layout {
            magic: Self::MAGIC,
            tag: self.tag.into(),
            connection: self.connection.into(),
            to: self.to.into(),
            consumed: self.consumed.into(),
            zero: 0.into(),
        })
    }

    /// The envelope at the beginning of a message, and what follows it. `None`: it is no message of ours.
    pub(super) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (layout, rest) = Layout::ref_from_prefix(bytes).ok()?;
        let is_ours = layout.magic == Self::MAGIC && layout.zero == 0 && layout.tag.get() >= 0;
        let envelope = Self {
            tag: layout.tag.get(),
            connection: layout.connection.get(),
            to: layout.to.get(),
            consumed: layout.consumed.get(),
        };
        is_ours.then_some((envelope, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_one_form() {
        let envelope = Envelope { tag: 5, connection: 1 << 40, to: 9, consumed: u32::MAX };
        let bytes = envelope.encode();
        let message = [&bytes[..], b"rest"].concat();
        assert_eq!(Envelope::split(&message), Some((envelope, b"rest".as_slice())));
        for len in 0..Envelope::LEN {
            assert_eq!(Envelope::split(&bytes[..len]), None);
        }
        for (place, value) in [(0, b'X'), (7, 0x80), (31, 1)] {
            let mut changed = bytes;
            changed[place] = value;
            assert_eq!(Envelope::split(&changed), None, "byte {place}");
        }
    }
}
