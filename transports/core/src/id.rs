//! Names of things: peers, regions, keys, tags. Plain values without behaviour.

use std::fmt;

macro_rules! generational {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            index: u32,
            generation: u32,
        }

        impl $name {
            /// A name made of a slot's index and the generation of its present occupant.
            #[must_use]
            pub const fn new(index: u32, generation: u32) -> Self {
                Self { index, generation }
            }

            /// The slot.
            #[must_use]
            pub const fn index(self) -> u32 {
                self.index
            }

            /// How often the slot had been used before.
            #[must_use]
            pub const fn generation(self) -> u32 {
                self.generation
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}.{})"), self.index, self.generation)
            }
        }
    };
}

generational! {
    /// Another process, as one transport sees it. Chosen by the caller of [`connect`](crate::Transport::connect);
    /// a pair of index and generation is never used for two peers.
    Peer
}
generational! {
    /// Memory of this process that a transport may read and write. Never reused.
    Region
}
generational! {
    /// Memory of a peer that this process may read and write through the transport. Never reused.
    RemoteRegion
}

/// What the caller wants back when an operation is done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Token(pub u64);

/// A label on a message sent with [`send`](crate::Transport::send); handed to the receiver unread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tag(pub u32);

/// The identity of one piece of a transfer, raised at the target after the piece has arrived.
///
/// Thirty-two bits, because some network cards carry no more: the target's slot, whose generation is part of
/// the number (16 bits), and the segment (16 bits). It identifies, it does not count: a receiver marks a
/// bitmap, so a repeated or a stale notice changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Notice(pub u32);

impl Notice {
    /// The notice for `segment` of the transfer that the target keeps under `slot`.
    #[must_use]
    pub const fn new(slot: u16, segment: u16) -> Self {
        Self((slot as u32) << 16 | segment as u32)
    }

    /// The target's slot.
    #[must_use]
    pub const fn slot(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The segment inside the transfer.
    #[must_use]
    pub const fn segment(self) -> u16 {
        self.0 as u16
    }
}

/// Where a transport can be reached: opaque bytes, at most [`Address::MAX`] of them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(Vec<u8>);

impl Address {
    /// The longest address, in bytes.
    pub const MAX: usize = 1024;

    /// An address from bytes of this process or of a peer. `None` when there are more than [`Address::MAX`].
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= Self::MAX).then(|| Self(bytes.to_vec()))
    }

    /// The bytes to hand to peers.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.0.escape_ascii())
    }
}

/// What a peer needs to reach a [`Region`]: opaque bytes of fixed size, so that it fits into any header.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegionKey([u8; Self::LEN]);

impl RegionKey {
    /// The size of a key in bytes.
    pub const LEN: usize = 32;

    /// A key from its bytes, whoever they come from; [`import`](crate::Transport::import) judges them.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes to hand to a peer.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Debug for RegionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionKey(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
