//! What a transport can do, and how much of it.

use std::fmt;
use std::ops::BitOr;
use std::time::Duration;

/// Whether a transport can do something. A set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Nothing beyond the required methods.
    pub const NONE: Self = Self(0);
    /// Puts to one peer become visible in the order they were posted.
    pub const ORDERED: Self = Self(1);
    /// [`register`](crate::Transport::register) accepts memory of the caller. With [`REVOKE`](Self::REVOKE) and without
    /// [`DIRECT`](Self::DIRECT) peers can reach it.
    pub const REGISTER: Self = Self(1 << 1);
    /// [`allocate`](crate::Transport::allocate) works.
    pub const ALLOCATE: Self = Self(1 << 2);
    /// Memory from [`allocate`](crate::Transport::allocate) is mapped by peers: loads and stores reach it.
    pub const DIRECT: Self = Self(1 << 3);
    /// [`get`](crate::Transport::get) works.
    pub const GET: Self = Self(1 << 4);
    /// [`atomic`](crate::Transport::atomic) works.
    pub const ATOMIC: Self = Self(1 << 5);
    /// After [`deregister`](crate::Transport::deregister) neither a peer nor a queue touches the memory.
    pub const REVOKE: Self = Self(1 << 6);
    /// Bytes on the wire are encrypted.
    pub const ENCRYPTED: Self = Self(1 << 7);
    /// A network card, not a processor, places the bytes.
    pub const RDMA: Self = Self(1 << 8);

    const NAMES: [(Self, &'static str); 9] = [
        (Self::ORDERED, "ORDERED"),
        (Self::REGISTER, "REGISTER"),
        (Self::ALLOCATE, "ALLOCATE"),
        (Self::DIRECT, "DIRECT"),
        (Self::GET, "GET"),
        (Self::ATOMIC, "ATOMIC"),
        (Self::REVOKE, "REVOKE"),
        (Self::ENCRYPTED, "ENCRYPTED"),
        (Self::RDMA, "RDMA"),
    ];

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(Self::NAMES.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| name))
            .finish()
    }
}

/// How much of it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes one [`send`](crate::Transport::send) carries.
    pub send: usize,
    /// Messages of up to this many bytes are better sent at once, and copied once more at the receiver, than announced
    /// and put where they belong: what was measured.
    pub eager: usize,
    /// The most bytes one [`put`](crate::Transport::put) or [`get`](crate::Transport::get) carries.
    pub put: usize,
    /// Up to this many bytes a `send` costs no more than an empty one.
    pub inline: usize,
    /// How many operations to one peer may be under way before [`Posted::Full`](crate::Posted::Full).
    pub outstanding: usize,
    /// Offsets and lengths of puts that are multiples of this many bytes are moved fastest.
    pub alignment: usize,
    /// Time of an empty message, one way: the alpha of the cost model, until it is measured.
    pub latency: Duration,
    /// Bytes per second in one direction: the inverse beta of the cost model, until it is measured.
    pub bandwidth: f64,
}

impl Limits {
    /// Modest limits that any backend keeps; a backend overrides the fields where it is better.
    pub const MODEST: Self = Self {
        send: 16 << 10,
        eager: 16 << 10,
        put: 1 << 20,
        inline: 64,
        outstanding: 64,
        alignment: 64,
        latency: Duration::from_micros(10),
        bandwidth: 1e9,
    };
}
