//! One endpoint under test, and the promises that are checked at every event, whatever the test is about.

use gradwire_transport::{
    Activity, Event, EventRef, Events, FailReason, LossReason, Notice, Peer, RemoteRegion, Tag, Token,
    Transport,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// An event, with the bytes of messages.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they mean what the events mean")]
pub enum Seen {
    Connected(Peer),
    Done(Token),
    Notified(Peer, Notice),
    Received(Peer, Tag, Vec<u8>),
    Failed(Token, FailReason),
    PathLost(Peer),
    PeerLost(Peer, LossReason),
}

/// One endpoint.
#[derive(Debug)]
pub(super) struct Node {
    /// `None` once killed.
    pub(super) transport: Option<Box<dyn Transport>>,
    /// Whether turns of the cluster drive it.
    pub(super) is_driven: bool,
    /// Whether a `progress` was busy since somebody asked.
    pub(super) was_busy: bool,
    /// All that happened.
    pub(super) seen: Vec<Seen>,
    /// Whom each imported region belongs to.
    pub(super) owners: BTreeMap<RemoteRegion, Peer>,
    /// Operations under way.
    pub(super) pending: BTreeMap<Token, Peer>,
    events: Events,
    connected: BTreeSet<Peer>,
    over: BTreeSet<Peer>,
}

impl Node {
    pub(super) fn new(transport: Box<dyn Transport>) -> Self {
        Self {
            transport: Some(transport),
            is_driven: true,
            was_busy: false,
            seen: Vec::new(),
            owners: BTreeMap::new(),
            pending: BTreeMap::new(),
            events: Events::new(),
            connected: BTreeSet::new(),
            over: BTreeSet::new(),
        }
    }

    /// One call of `progress`. `Err`: a promise was broken.
    pub(super) fn turn(&mut self, now: Instant) -> Result<Activity, String> {
        let Some(transport) = self.transport.as_mut().filter(|_| self.is_driven) else {
            return Ok(Activity::Idle);
        };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let activity = transport.progress(now, &mut events).map_err(|error| format!("progress: {error}"))?;
        if !events.is_empty() && activity == Activity::Idle {
            return Err("events were reported, and the transport calls itself idle".into());
        }
        self.was_busy |= activity == Activity::Busy;
        for event in events.iter() {
            let seen = Seen::from(event);
            self.check(&seen).map_err(|broken| format!("{broken}: {seen:?}"))?;
            self.seen.push(seen);
        }
        self.events = events;
        Ok(activity)
    }

    /// We end a connection: nothing of it may be heard from now on.
    pub(super) fn close(&mut self, peer: Peer) {
        self.over.insert(peer);
    }

    fn check(&mut self, seen: &Seen) -> Result<(), &'static str> {
        match seen {
            Seen::Done(token) | Seen::Failed(token, _) => {
                self.pending.remove(token).ok_or("the end of an operation that was not under way").map(drop)
            }
            Seen::Connected(peer) => {
                self.check_live(*peer)?;
                if self.connected.insert(*peer) { Ok(()) } else { Err("connected twice") }
            }
            Seen::Notified(peer, _) | Seen::Received(peer, ..) | Seen::PathLost(peer) => {
                self.check_live(*peer)?;
                if self.connected.contains(peer) { Ok(()) } else { Err("heard before it was connected") }
            }
            Seen::PeerLost(peer, _) => {
                self.check_live(*peer)?;
                self.over.insert(*peer);
                let has_failed_all = self.pending.values().all(|owner| owner != peer);
                if has_failed_all { Ok(()) } else { Err("lost before its operations had failed") }
            }
        }
    }

    fn check_live(&self, peer: Peer) -> Result<(), &'static str> {
        if self.over.contains(&peer) { Err("heard after the connection was over") } else { Ok(()) }
    }
}

impl From<EventRef<'_>> for Seen {
    fn from(event: EventRef<'_>) -> Self {
        match event {
            EventRef::Received(peer, tag, bytes) => Self::Received(peer, tag, bytes.to_vec()),
            EventRef::Other(event) => match event.clone() {
                Event::Connected(peer) => Self::Connected(peer),
                Event::Done(token) => Self::Done(token),
                Event::Notified(peer, notice) => Self::Notified(peer, notice),
                Event::Failed(token, reason) => Self::Failed(token, reason),
                Event::PathLost(peer) => Self::PathLost(peer),
                Event::PeerLost(peer, reason) => Self::PeerLost(peer, reason),
                unknown => panic!("an event that the suite does not know: {unknown:?}"),
            },
            unknown => panic!("an event that the suite does not know: {unknown:?}"),
        }
    }
}
