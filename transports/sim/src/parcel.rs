//! What travels.

use crate::address::NodeIndex;
use gradwire_transport::{Atomic, Notice, RegionKey, Tag};
use std::sync::Arc;

/// One side's view of one connection; never used twice in a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ConnectionId(pub(crate) u64);

/// As long as a clone lives, an operation counts as outstanding.
pub(crate) type Credit = Arc<()>;

#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) from: NodeIndex,
    /// The sender's connection.
    pub(crate) connection: ConnectionId,
    pub(crate) body: Body,
    pub(crate) credit: Option<Credit>,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// The sender wants to connect. Only who knows the secret is let in.
    Hello {
        secret: u64,
    },
    /// The receiver's hello was not good enough.
    Refused,
    /// The sender closed the connection in good order.
    Bye,
    /// The receiver broke the protocol.
    Reset,
    /// The sender's process is gone, with all its connections.
    Gone,
    Message {
        tag: Tag,
        bytes: Vec<u8>,
    },
    Put {
        notice: Option<Notice>,
        key: RegionKey,
        offset: u64,
        bytes: Vec<u8>,
    },
    Get {
        request: u64,
        key: RegionKey,
        offset: u64,
        len: u64,
    },
    Atomic {
        request: u64,
        atomic: Atomic,
        key: RegionKey,
    },
    /// To a get or an atomic. `None`: the region is gone.
    Reply {
        request: u64,
        bytes: Option<Vec<u8>>,
    },
}

impl Parcel {
    /// Takes off the first half of the bytes of a put, without the notice. `None` when there is nothing to halve.
    pub(crate) fn tear(&mut self) -> Option<Self> {
        let Body::Put { key, offset, bytes, .. } = &mut self.body else { return None };
        let half = bytes.len() / 2;
        if half == 0 {
            return None;
        }
        let rest = bytes.split_off(half);
        let first =
            Body::Put { notice: None, key: *key, offset: *offset, bytes: std::mem::replace(bytes, rest) };
        *offset += half as u64;
        Some(Self { body: first, credit: None, ..*self })
    }

    /// The notice of a put once more.
    pub(crate) fn echo(&self) -> Self {
        let mut body = self.body.clone();
        if let Body::Put { bytes, .. } = &mut body {
            bytes.clear();
        }
        Self { body, credit: None, ..*self }
    }
}

/// What a parcel must not overtake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Nothing of its pair that was sent before.
    AfterAll,
    /// No message of its pair that was sent before.
    AfterMessages,
    /// Only what opened the connection.
    Any,
}

impl Body {
    /// Bytes on the wire.
    pub(crate) fn size(&self) -> usize {
        const HEADER: usize = 64;
        HEADER
            + match self {
                Self::Message { bytes, .. }
                | Self::Put { bytes, .. }
                | Self::Reply { bytes: Some(bytes), .. } => bytes.len(),
                _ => 0,
            }
    }

    pub(crate) fn order(&self) -> Order {
        match self {
            Self::Message { .. } => Order::AfterMessages,
            Self::Put { .. } | Self::Get { .. } | Self::Atomic { .. } | Self::Reply { .. } => Order::Any,
            Self::Hello { .. } | Self::Refused | Self::Bye | Self::Reset | Self::Gone => Order::AfterAll,
        }
    }
}
