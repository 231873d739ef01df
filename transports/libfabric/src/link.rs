//! One peer: how far the acquaintance has come, what is on its way, and what each side may still send.

use crate::frame::{Control, Kind};
use crate::key::Secret;
use crate::memory::Memory;
use crate::pool::BUFFER;
use crate::wire::{Call, Target};
use gradwire_transport::{Address, LossReason, Notice, Peer, Region, RegionKey, Token, TransportError};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Messages that a peer may send before it is told that some were consumed.
pub(crate) const WINDOW: u32 = 32;
/// Withdrawn keys that are remembered, for keys that come later than their withdrawal.
const REMEMBERED: usize = 1024;

/// What an operation of the provider's is for.
#[derive(Debug)]
pub(crate) enum Work {
    /// A buffer waits for a message.
    Receive(u32),
    /// The message of a buffer.
    Send {
        link: u32,
        buffer: u32,
    },
    /// `notice`: to be sent when the bytes are there.
    Put {
        link: u32,
        token: Option<Token>,
        key: RegionKey,
        stand_in: Option<Arc<Memory>>,
        notice: Option<Notice>,
    },
    Get {
        link: u32,
        token: Option<Token>,
        key: RegionKey,
        landing: Option<Landing>,
    },
    /// Tries the path to a new peer.
    Greet {
        link: u32,
    },
    /// Tries a key of a peer.
    Probe {
        link: u32,
        key: RegionKey,
    },
}

/// Where the bytes that an operation fetches into a stand-in belong.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) stand_in: Arc<Memory>,
    /// First byte in the stand-in.
    pub(crate) from: usize,
    pub(crate) region: Region,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Work {
    pub(crate) fn link(&self) -> Option<u32> {
        match self {
            Self::Receive(_) => None,
            Self::Send { link, .. }
            | Self::Put { link, .. }
            | Self::Get { link, .. }
            | Self::Greet { link }
            | Self::Probe { link, .. } => Some(*link),
        }
    }

    /// The peer's key that it uses.
    pub(crate) fn key(&self) -> Option<&RegionKey> {
        match self {
            Self::Put { key, .. } | Self::Get { key, .. } | Self::Probe { key, .. } => Some(key),
            Self::Receive(_) | Self::Send { .. } | Self::Greet { .. } => None,
        }
    }

    /// Whose end the caller waits for, once.
    pub(crate) fn take_token(&mut self) -> Option<Token> {
        match self {
            Self::Put { token, .. } | Self::Get { token, .. } => token.take(),
            _ => None,
        }
    }
}

/// One peer.
pub(crate) struct Link {
    pub(crate) name: Peer,
    /// Of its control connections.
    pub(crate) address: Address,
    pub(crate) stage: Stage,
    /// What the peer has to show.
    pub(crate) nonce: u64,
    pub(crate) theirs: Option<Theirs>,
    /// What the path has carried so far, of what is tried at the beginning.
    pub(crate) tried: Tried,
    /// Operations that the provider would not take yet, in order.
    pub(crate) backlog: VecDeque<(Call, Work)>,
    /// Operations that the provider has.
    pub(crate) flights: usize,
    /// Operations of the caller that have not ended.
    pub(crate) operations: usize,
    /// Notices to be sent as messages.
    pub(crate) notices: VecDeque<Notice>,
    pub(crate) credit: Credit,
    pub(crate) notices_sent: u64,
    pub(crate) notices_heard: u64,
    /// What the control connection would not take yet.
    pub(crate) unsaid: VecDeque<Control>,
    /// Keys of the peer's that were tried, and whether they have been found to be good.
    pub(crate) probed: HashMap<RegionKey, bool>,
    /// Keys the peer has taken back, that operations still use.
    pub(crate) withdrawing: Vec<RegionKey>,
    pub(crate) withdrawn: VecDeque<RegionKey>,
}

/// What the peer has told of itself.
#[derive(Debug)]
pub(crate) struct Theirs {
    pub(crate) slot: u32,
    pub(crate) nonce: u64,
    pub(crate) secret: Secret,
    pub(crate) board: Target,
}

/// Each side writes to the other and sends it a message before it believes in the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried {
    pub(crate) has_written: bool,
    pub(crate) has_heard_write: bool,
    pub(crate) has_heard_message: bool,
    pub(crate) has_said_ready: bool,
    pub(crate) has_heard_ready: bool,
}

/// How far it has come.
#[derive(Debug)]
pub(crate) enum Stage {
    /// The control connection is being made.
    Calling,
    /// The path on the fabric is being tried.
    Greeting {
        deadline: Instant,
    },
    Open,
    /// The peer has gone. What it sent before may still come: so many messages and notices if it said so, else whatever
    /// comes until then.
    Ending {
        reason: LossReason,
        until: Instant,
        expected: Option<(u32, u64)>,
    },
    /// We go: once everything has left, and the peer has it.
    Leaving {
        deadline: Option<Instant>,
        has_said_bye: bool,
    },
    /// It is over, but the provider still has operations.
    Over,
}

/// Who may send how many messages. All numbers count from the beginning, and wrap.
#[derive(Debug)]
pub(crate) struct Credit {
    sent: u32,
    allowed: u32,
    consumed: u32,
    told: u32,
}

impl Credit {
    pub(crate) fn is_used_up(&self) -> bool {
        self.sent == self.allowed
    }

    /// The number of the next message.
    pub(crate) fn spend(&mut self) -> u32 {
        self.sent = self.sent.wrapping_add(1);
        self.sent.wrapping_sub(1)
    }

    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// The peer has consumed so many. Whether that makes room.
    pub(crate) fn allow(&mut self, consumed: u32) -> bool {
        let allowed = consumed.wrapping_add(WINDOW);
        let room = allowed.wrapping_sub(self.sent);
        let grows = room <= WINDOW && room > self.allowed.wrapping_sub(self.sent);
        if grows {
            self.allowed = allowed;
        }
        grows
    }

    /// A message has come. `false`: not the one that should.
    pub(crate) fn consume(&mut self, sequence: u32) -> bool {
        let is_next = sequence == self.consumed;
        self.consumed = self.consumed.wrapping_add(u32::from(is_next));
        is_next
    }

    pub(crate) fn consumed(&self) -> u32 {
        self.consumed
    }

    /// What the peer should be told by itself.
    pub(crate) fn owes(&self) -> bool {
        self.consumed.wrapping_sub(self.told) >= WINDOW / 2
    }

    pub(crate) fn tell(&mut self) -> u32 {
        self.told = self.consumed;
        self.consumed
    }
}

impl Default for Credit {
    fn default() -> Self {
        Self { sent: 0, allowed: WINDOW, consumed: 0, told: 0 }
    }
}

impl Link {
    pub(crate) fn new(name: Peer, address: Address, nonce: u64) -> Self {
        Self {
            name,
            address,
            stage: Stage::Calling,
            nonce,
            theirs: None,
            tried: Tried::default(),
            backlog: VecDeque::new(),
            flights: 0,
            operations: 0,
            notices: VecDeque::new(),
            credit: Credit::default(),
            notices_sent: 0,
            notices_heard: 0,
            unsaid: VecDeque::new(),
            probed: HashMap::new(),
            withdrawing: Vec::new(),
            withdrawn: VecDeque::new(),
        }
    }

    /// Whether the peer has been found on both paths, and not been lost.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Whether something the caller gave has not left.
    pub(crate) fn has_output(&self) -> bool {
        let leaves = matches!(self.stage, Stage::Leaving { .. });
        let is_over = matches!(self.stage, Stage::Over);
        leaves || !is_over && (self.flights > 0 || !self.backlog.is_empty() || !self.notices.is_empty())
    }

    pub(crate) fn remember_withdrawn(&mut self, key: RegionKey) {
        if self.withdrawn.len() == REMEMBERED {
            self.withdrawn.pop_front();
        }
        self.withdrawn.push_back(key);
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the nonce nor the secret: they are between us and the peer.
        f.debug_struct("Link")
            .field("name", &self.name)
            .field("stage", &self.stage)
            .field("tried", &self.tried)
            .field("backlog", &self.backlog.len())
            .field("flights", &self.flights)
            .field("operations", &self.operations)
            .field("credit", &self.credit)
            .field("unsaid", &self.unsaid.len())
            .finish_non_exhaustive()
    }
}

/// Which messages are whole.
pub(crate) fn is_whole(kind: Kind, payload: usize) -> bool {
    match kind {
        Kind::Message => payload <= BUFFER,
        Kind::Hello | Kind::Notice | Kind::Credit => payload == 0,
    }
}

/// All peers: under their names, and in slots.
#[derive(Debug, Default)]
pub(crate) struct Links {
    places: HashMap<Peer, Place>,
    slots: Vec<Option<Link>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Slot(u32),
    /// The peer was lost.
    Lost,
    /// We disconnected from it.
    Left,
}

impl Links {
    /// The slot of a new peer; `None` when there are too many.
    pub(crate) fn insert(&mut self, link: Link) -> Option<u32> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        // Completions carry sixteen bits of it.
        let slot = u16::try_from(free).ok()?;
        self.places.insert(link.name, Place::Slot(slot.into()));
        match self.slots.get_mut(free) {
            Some(place) => *place = Some(link),
            None => self.slots.push(Some(link)),
        }
        Some(slot.into())
    }

    pub(crate) fn slot_of(&self, name: Peer) -> Option<u32> {
        match self.places.get(&name) {
            Some(Place::Slot(slot)) => Some(*slot),
            _ => None,
        }
    }

    /// The slot of a peer that takes operations; `None` while it does not.
    pub(crate) fn open(&self, name: Peer) -> Result<Option<u32>, TransportError> {
        match self.places.get(&name) {
            Some(Place::Slot(slot)) => Ok(self.get(*slot).filter(|link| link.is_open()).map(|_| *slot)),
            Some(Place::Lost) => Err(TransportError::PeerLost),
            Some(Place::Left) | None => Err(TransportError::NotConnected),
        }
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Link> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Link> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// From now on the name tells only how it ended.
    pub(crate) fn retire(&mut self, name: Peer, place: Place) {
        self.places.insert(name, place);
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Link> {
        self.slots.get_mut(slot as usize)?.take()
    }

    /// All slots, occupied or not.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.slots.len() as u32
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Link> {
        self.slots.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_bounded_by_the_window_and_wraps() {
        let start = u32::MAX - 5;
        let mut sender = Credit { sent: start, allowed: start.wrapping_add(WINDOW), consumed: 0, told: 0 };
        let mut receiver = Credit { consumed: start, told: start, sent: 0, allowed: 0 };
        for _ in 0..3 {
            let mut count = 0;
            while !sender.is_used_up() {
                assert!(receiver.consume(sender.spend()));
                count += 1;
            }
            assert_eq!(count, WINDOW);
            assert!(receiver.owes());
            assert!(sender.allow(receiver.tell()));
            assert!(!receiver.owes());
            assert!(!sender.allow(receiver.consumed()), "the same again makes no room");
        }
        assert!(!sender.allow(receiver.consumed().wrapping_add(1)), "more than was sent");
        assert!(!receiver.consume(sender.sent().wrapping_add(1)), "a message too far");
    }
}
