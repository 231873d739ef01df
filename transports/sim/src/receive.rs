//! What an endpoint does with what arrives.

use crate::address::NodeIndex;
use crate::atomic;
use crate::endpoint::{Item, Outgoing, Sim};
use crate::parcel::{Body, ConnectionId, Parcel};
use crate::peer::{PeerState, Stage};
use gradwire_transport::region::{Denied, Span};
use gradwire_transport::{Activity, Event, Events, FailReason, LossReason, Peer, RegionKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// `ECONNRESET` and `ECONNREFUSED`: what a real network would say.
const RESET: i32 = 104;
const REFUSED: i32 = 111;

impl Sim {
    pub(crate) fn receive(&mut self, now: Instant, events: &mut Events) -> Activity {
        let shared = Arc::clone(&self.shared);
        let mut activity = Activity::Idle;
        let mut creditors = BTreeSet::new();
        loop {
            let parcel = shared.wires().nodes[self.index as usize].take(now);
            let Some(parcel) = parcel else { break };
            activity = Activity::Busy;
            creditors.extend(parcel.credit.is_some().then_some(parcel.from));
            self.accept(parcel, now, events);
        }
        shared.wires().wake_all(&creditors);
        activity
    }

    fn accept(&mut self, parcel: Parcel, now: Instant, events: &mut Events) {
        let Parcel { from, connection, body, .. } = parcel;
        match body {
            Body::Hello { secret } if secret == self.secret => self.greet(from, connection, events),
            Body::Hello { .. } => {
                self.ship(from, connection, Body::Refused, None, now);
                self.refuse(from, "it does not know the secret of this job", events);
            }
            Body::Refused => self.refuse(from, "it did not accept our secret", events),
            Body::Gone => self.lose_node(from, events),
            body => match self.find(|state| state.node == from && state.remote == Some(connection)) {
                Some(peer) => self.accept_from(peer, body, events),
                None if matches!(body, Body::Bye) => self.forget_greeting(from, connection),
                // Sent before its sender knew that the connection is over.
                None => {}
            },
        }
    }

    fn accept_from(&mut self, peer: Peer, body: Body, events: &mut Events) {
        match body {
            Body::Bye => {
                self.lose(peer, LossReason::Closed, events);
                self.answer(peer, Item::Bye);
            }
            Body::Reset => self.lose(peer, LossReason::Broken { code: RESET }, events),
            Body::Message { tag, bytes } => events.push_received(peer, tag, &bytes),
            Body::Put { notice, key, offset, bytes } => match self.place(&key, offset, &bytes) {
                Ok(()) => events.extend(notice.map(|notice| Event::Notified(peer, notice))),
                Err(denied) => self.punish(peer, denied, events),
            },
            Body::Get { request, key, offset, len } => {
                let bytes = self.open(&key, offset, len).map(|bytes| Some(bytes.to_vec()));
                self.reply(peer, request, bytes, events);
            }
            Body::Atomic { request, atomic, key } => {
                let (offset, len) = (atomic.target_offset as u64, atomic::size(atomic.kind) as u64);
                let bytes = self.open(&key, offset, len).map(|element| atomic::apply(&atomic, element));
                self.reply(peer, request, bytes, events);
            }
            Body::Reply { request, bytes } => self.finish(peer, request, bytes.as_deref(), events),
            Body::Hello { .. } | Body::Refused | Body::Gone => {}
        }
    }

    fn greet(&mut self, from: NodeIndex, connection: ConnectionId, events: &mut Events) {
        match self.find(|state| state.node == from && state.remote.is_none()) {
            Some(peer) => {
                self.peers.entry(peer).and_modify(|state| state.remote = Some(connection));
                self.settle(peer, events);
            }
            None => self.greetings.entry(from).or_default().push_back(connection),
        }
    }

    fn forget_greeting(&mut self, from: NodeIndex, connection: ConnectionId) {
        if let Some(greetings) = self.greetings.get_mut(&from) {
            greetings.retain(|greeting| *greeting != connection);
        }
    }

    fn refuse(&mut self, from: NodeIndex, why: &'static str, events: &mut Events) {
        let waiting =
            |state: &PeerState| state.node == from && matches!(state.stage, Stage::Connecting { .. });
        while let Some(peer) = self.find(waiting) {
            self.lose(peer, LossReason::Refused(why), events);
        }
    }

    fn lose_node(&mut self, node: NodeIndex, events: &mut Events) {
        self.greetings.remove(&node);
        while let Some(peer) = self.find(|state| state.node == node) {
            let connected = self.peers.get(&peer).is_some_and(|state| state.stage == Stage::Connected);
            let reason = if connected {
                LossReason::Broken { code: 0 }
            } else {
                LossReason::Unreachable { code: REFUSED }
            };
            self.lose(peer, reason, events);
        }
    }

    /// Writes what a put brings. All checks of the target are here and in [`open`](Self::open).
    fn place(&mut self, key: &RegionKey, offset: u64, bytes: &[u8]) -> Result<(), Denied> {
        self.open(key, offset, bytes.len() as u64)?.copy_from_slice(bytes);
        Ok(())
    }

    fn open(&mut self, key: &RegionKey, offset: u64, len: u64) -> Result<&mut [u8], Denied> {
        let Span { region, offset, len } = self.regions.resolve(key, offset, len)?;
        if len > self.limits.put {
            return Err(Denied::OutOfRange);
        }
        self.regions.bytes_mut(region, offset, len).map_err(|_| Denied::Revoked)
    }

    fn reply(
        &mut self,
        peer: Peer,
        request: u64,
        bytes: Result<Option<Vec<u8>>, Denied>,
        events: &mut Events,
    ) {
        match bytes {
            Ok(bytes) => self.answer(peer, Item::Reply { request, bytes }),
            Err(Denied::Revoked) => self.answer(peer, Item::Reply { request, bytes: None }),
            Err(denied) => self.punish(peer, denied, events),
        }
    }

    /// Ends a get or an atomic of ours.
    fn finish(&mut self, peer: Peer, request: u64, bytes: Option<&[u8]>, events: &mut Events) {
        let Some(request) = self.requests.remove(&request).filter(|request| request.peer == peer) else {
            return;
        };
        let target = self.regions.bytes_mut(request.target, request.offset, request.len);
        events.push(match (target, bytes) {
            (Ok(target), Some(bytes)) if target.len() == bytes.len() => {
                target.copy_from_slice(bytes);
                Event::Done(request.token)
            }
            _ => Event::Failed(request.token, FailReason::Revoked),
        });
    }

    /// Who reaches for what it was not given loses its connection; who was too late does not.
    fn punish(&mut self, peer: Peer, denied: Denied, events: &mut Events) {
        if let Some(offence) = denied.offence() {
            self.lose(peer, LossReason::Protocol(offence), events);
            self.answer(peer, Item::Reset);
        }
    }

    fn answer(&mut self, peer: Peer, item: Item) {
        self.queue.push_back(Outgoing { peer, item, credit: None });
    }

    /// The oldest living connection that fits. Several to one node are paired in the order they were asked for.
    fn find(&self, fits: impl Fn(&PeerState) -> bool) -> Option<Peer> {
        let fitting = self.peers.iter().filter(|(_, state)| state.is_live() && fits(state));
        fitting.min_by_key(|(_, state)| state.own).map(|(peer, _)| *peer)
    }
}
