//! The peers of one transport: under their names, and in slots that the poll set knows.

use crate::address::EndpointId;
use crate::connection::Connection;
use crate::dial::Dial;
use crate::handshake::Refusal;
use gradwire_transport::{Peer, TransportError};
use std::collections::HashMap;
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Peer,
    pub(crate) id: EndpointId,
    pub(crate) state: State,
}

#[derive(Debug)]
pub(crate) enum State {
    /// We call it.
    Dialling(Box<Dial>),
    /// It calls us.
    Awaiting {
        deadline: Option<Instant>,
        refused: Option<Refusal>,
    },
    Open(Box<Connection>),
    /// We have left, and what is queued is on its way.
    Closing {
        connection: Box<Connection>,
        deadline: Option<Instant>,
        finished: bool,
    },
}

impl State {
    /// Turns an open connection into one that closes when its queue is empty. Returns whether there was one.
    pub(crate) fn begin_closing(&mut self) -> bool {
        match std::mem::replace(self, Self::Awaiting { deadline: None, refused: None }) {
            Self::Open(connection) => {
                *self = Self::Closing { connection, deadline: None, finished: false };
                true
            }
            other => {
                *self = other;
                false
            }
        }
    }

    /// The connection, while it carries frames.
    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Open(connection) | Self::Closing { connection, .. } => Some(connection),
            Self::Dialling(_) | Self::Awaiting { .. } => None,
        }
    }
}

/// What became of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Slot(u32),
    /// The peer was lost.
    Lost,
    /// We disconnected from it.
    Left,
}

#[derive(Debug, Default)]
pub(crate) struct Peers {
    places: HashMap<Peer, Place>,
    slots: Vec<Option<Entry>>,
    count: usize,
}

impl Peers {
    pub(crate) fn is_known(&self, name: Peer) -> bool {
        self.places.contains_key(&name)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether a peer is on its way in or out.
    pub(crate) fn are_unsettled(&self) -> bool {
        self.slots.iter().flatten().any(|entry| !matches!(entry.state, State::Open(_)))
    }

    /// Whether anything is still to be written to a peer.
    pub(crate) fn have_output(&self) -> bool {
        self.slots.iter().flatten().any(|entry| match &entry.state {
            State::Open(connection) | State::Closing { connection, .. } => connection.has_output(),
            State::Dialling(_) | State::Awaiting { .. } => false,
        })
    }

    pub(crate) fn is_dialled(&self, slot: u32) -> bool {
        let entry = self.slots.get(slot as usize).and_then(Option::as_ref);
        entry.is_some_and(|entry| matches!(entry.state, State::Dialling(_)))
    }

    /// The slot that `insert` will use.
    pub(crate) fn free_slot(&self) -> u32 {
        let free = self.slots.iter().position(Option::is_none);
        free.unwrap_or(self.slots.len()) as u32
    }

    /// Gives a new name to the entry, in the free slot.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let slot = self.free_slot();
        self.places.insert(entry.name, Place::Slot(slot));
        self.count += 1;
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = Some(entry),
            None => self.slots.push(Some(entry)),
        }
    }

    pub(crate) fn slot_of(&self, name: Peer) -> Option<u32> {
        match self.places.get(&name) {
            Some(Place::Slot(slot)) => Some(*slot),
            _ => None,
        }
    }

    /// The peer behind an endpoint, unless we have left it.
    pub(crate) fn slot_of_endpoint(&self, id: EndpointId) -> Option<u32> {
        let is_it = |entry: &Entry| entry.id == id && !matches!(entry.state, State::Closing { .. });
        self.slots.iter().position(|slot| slot.as_ref().is_some_and(is_it)).map(|slot| slot as u32)
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Ends an entry whose peer is lost.
    pub(crate) fn lose(&mut self, slot: u32) -> Option<Entry> {
        self.end(slot, Place::Lost)
    }

    /// Ends an entry from whose peer we disconnected.
    pub(crate) fn leave(&mut self, slot: u32) -> Option<Entry> {
        self.end(slot, Place::Left)
    }

    /// The slot and the connection that takes operations for `name`; `None` while it is being made.
    pub(crate) fn open_mut(&mut self, name: Peer) -> Result<Option<(u32, &mut Connection)>, TransportError> {
        let slot = match self.places.get(&name) {
            Some(Place::Slot(slot)) => *slot,
            Some(Place::Lost) => return Err(TransportError::PeerLost),
            Some(Place::Left) | None => return Err(TransportError::NotConnected),
        };
        match self.get_mut(slot).map(|entry| &mut entry.state) {
            Some(State::Open(connection)) => Ok(Some((slot, connection))),
            Some(State::Dialling(_) | State::Awaiting { .. }) => Ok(None),
            Some(State::Closing { .. }) | None => Err(TransportError::NotConnected),
        }
    }

    /// All slots, occupied or not.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.slots.len() as u32
    }

    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.slots.iter_mut().flatten()
    }

    fn end(&mut self, slot: u32, place: Place) -> Option<Entry> {
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.places.insert(entry.name, place);
        self.count -= 1;
        Some(entry)
    }
}
