//! What an endpoint does when it is driven: the turn, and the way out. The way in is in `receive.rs`.

use crate::address::NodeIndex;
use crate::atomic;
use crate::endpoint::{Departed, Item, Outgoing, Request, Sim};
use crate::parcel::{Body, ConnectionId, Credit, Parcel};
use crate::peer::Stage;
use gradwire_transport::{
    Activity, Event, Events, FailReason, Linger, LossReason, Peer, Put, Region, Token, TransportError,
};
use std::io::Read;
use std::time::Instant;

/// `ETIMEDOUT`: what a real network would say.
const TIMED_OUT: i32 = 110;

impl Sim {
    pub(crate) fn turn(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        self.check_alive()?;
        let now = self.now.map_or(now, |last| last.max(now));
        self.now = Some(now);
        self.wake_up(now);

        let before = events.len();
        let activity = self.dispatch(now, events).or(self.receive(now, events));
        self.complete(now, events);
        self.give_up(now, events);
        events.extend(self.reports.drain(..));
        let limit = self.limits.outstanding;
        let recovered =
            self.peers.values_mut().filter_map(|state| state.recovers(limit).then_some(())).count();

        let planned = self.next_step();
        self.shared.wires().nodes[self.index as usize].planned = planned;
        Ok(if events.len() > before || recovered > 0 { Activity::Busy } else { activity })
    }

    fn wake_up(&mut self, now: Instant) {
        let mut wires = self.shared.wires();
        wires.tick(now);
        let rung = wires.nodes[self.index as usize].awake();
        if let (true, Some(Some(bell))) = (rung, self.bell.get()) {
            // It carries no information besides having rung.
            let _ = (&*bell).read(&mut [0; 64]);
        }
    }

    /// Hands to the network what the port has room for.
    fn dispatch(&mut self, now: Instant, events: &mut Events) -> Activity {
        let mut activity = Activity::Idle;
        while self.port_is_free(now)
            && let Some(outgoing) = self.queue.pop_front()
        {
            activity = Activity::Busy;
            self.depart(outgoing, now, events);
        }
        activity
    }

    fn depart(&mut self, Outgoing { peer, item, credit }: Outgoing, now: Instant, events: &mut Events) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        let (node, connection) = (state.node, state.own);
        if let (Item::Hello, Stage::Connecting { greeted, .. }) = (&item, &mut state.stage) {
            *greeted = true;
        }
        let (token, is_put) = (item.token(), matches!(item, Item::Put { .. }));
        let body = match self.pack(peer, item) {
            Ok(body) => body,
            Err(reason) => {
                events.extend(token.map(|token| Event::Failed(token, reason)));
                return;
            }
        };
        let at = self.ship(node, connection, body, credit, now);
        if let (true, Some(token)) = (is_put, token) {
            self.departed.push_back(Departed { peer, token, at });
        }
        self.settle(peer, events);
    }

    /// What travels for an item. Here, and not before, the source of a put is read.
    fn pack(&mut self, peer: Peer, item: Item) -> Result<Body, FailReason> {
        Ok(match item {
            Item::Hello => Body::Hello { secret: self.secret },
            Item::Bye => Body::Bye,
            Item::Reset => Body::Reset,
            Item::Message { tag, bytes } => Body::Message { tag, bytes },
            Item::Reply { request, bytes } => Body::Reply { request, bytes },
            Item::Put { put: Put { len, source, source_offset, target_offset, notice, .. }, key } => {
                let bytes =
                    self.regions.bytes(source, source_offset, len).map_err(|_| FailReason::Revoked)?;
                Body::Put { notice, key, offset: target_offset as u64, bytes: bytes.to_vec() }
            }
            Item::Get { get, key } => {
                let request = self.remember(peer, get.token, get.target, get.target_offset, get.len);
                Body::Get { request, key, offset: get.source_offset as u64, len: get.len as u64 }
            }
            Item::Atomic { atomic, key } => {
                let len = atomic::size(atomic.kind);
                let request = self.remember(peer, atomic.token, atomic.fetched, atomic.fetched_offset, len);
                Body::Atomic { request, atomic, key }
            }
        })
    }

    fn remember(&mut self, peer: Peer, token: Token, target: Region, offset: usize, len: usize) -> u64 {
        self.next_request += 1;
        self.requests.insert(self.next_request, Request { peer, token, target, offset, len });
        self.next_request
    }

    /// Puts a parcel on the wire; returns when it has left the port.
    pub(crate) fn ship(
        &self,
        to: NodeIndex,
        connection: ConnectionId,
        body: Body,
        credit: Option<Credit>,
        now: Instant,
    ) -> Instant {
        let mut wires = self.shared.wires();
        if !wires.is_alive(to) {
            wires.announce_end(to, self.index);
        }
        wires.ship(to, Parcel { from: self.index, connection, body, credit }, now)
    }

    fn complete(&mut self, now: Instant, events: &mut Events) {
        while let Some(departed) = self.departed.pop_front_if(|departed| departed.at <= now) {
            events.push(Event::Done(departed.token));
        }
    }

    /// Loses those who have been waited for long enough.
    fn give_up(&mut self, now: Instant, events: &mut Events) {
        let mut lost = Vec::new();
        {
            let wires = self.shared.wires();
            for (peer, state) in &mut self.peers {
                match &mut state.stage {
                    Stage::Connecting { deadline, .. } => {
                        if *deadline.get_or_insert(now + self.connect_timeout) <= now {
                            lost.push((*peer, LossReason::Unreachable { code: TIMED_OUT }));
                        }
                    }
                    Stage::Connected => {
                        let cut = wires.cut_since(self.index, state.node);
                        if cut.is_some_and(|since| since + self.silence <= now) {
                            lost.push((*peer, LossReason::Silent(self.silence)));
                        }
                    }
                    Stage::Lost | Stage::Disconnected => {}
                }
            }
        }
        for (peer, reason) in lost {
            self.lose(peer, reason, events);
        }
    }

    /// When something is to be done even if nothing arrives.
    fn next_step(&self) -> Option<Instant> {
        let wires = self.shared.wires();
        let port = wires.nodes[self.index as usize].out_free.filter(|_| !self.queue.is_empty());
        let departure = self.departed.front().map(|departed| departed.at);
        let patience = self.peers.values().filter_map(|state| match state.stage {
            Stage::Connecting { deadline, .. } => deadline,
            Stage::Connected => wires.cut_since(self.index, state.node).map(|since| since + self.silence),
            Stage::Lost | Stage::Disconnected => None,
        });
        patience.chain(port).chain(departure).min()
    }

    fn port_is_free(&self, now: Instant) -> bool {
        self.shared.wires().nodes[self.index as usize].out_free.is_none_or(|free| free <= now)
    }

    /// Reports a connection once both sides have greeted.
    pub(crate) fn settle(&mut self, peer: Peer, events: &mut Events) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        if matches!(state.stage, Stage::Connecting { greeted: true, .. }) && state.remote.is_some() {
            state.stage = Stage::Connected;
            events.push(Event::Connected(peer));
        }
    }

    /// Ends the operations of a peer, and reports the loss of it.
    pub(crate) fn lose(&mut self, peer: Peer, reason: LossReason, events: &mut Events) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.is_live()) else { return };
        state.stage = Stage::Lost;
        self.abandon(peer, Linger::Drop);
        events.extend(self.reports.drain(..));
        events.push(Event::PeerLost(peer, reason));
    }

    /// Ends the operations of a peer. With [`Linger::Flush`] its messages stay queued.
    pub(crate) fn abandon(&mut self, peer: Peer, linger: Linger) {
        let reports = &mut self.reports;
        let mut fail = |token| reports.push(Event::Failed(token, FailReason::PeerLost));
        self.departed.retain(|departed| {
            let keep = departed.peer != peer;
            if !keep {
                fail(departed.token);
            }
            keep
        });
        self.requests.retain(|_, request| {
            let keep = request.peer != peer;
            if !keep {
                fail(request.token);
            }
            keep
        });
        self.queue.retain(|outgoing| {
            let token = outgoing.item.token().filter(|_| outgoing.peer == peer);
            token.into_iter().for_each(&mut fail);
            outgoing.peer != peer || (token.is_none() && linger == Linger::Flush)
        });
    }
}
