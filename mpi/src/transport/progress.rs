//! What an endpoint does when it is driven, and with what arrives.

use super::address::Place;
use super::envelope::Envelope;
use super::peer::{PeerState, Stage};
use super::wire::{Arrival, Trouble};
use super::{GONE, HELLO, Mpi, RESET};
use gradwire_transport::frame::Frame;
use gradwire_transport::region::{Denied, Span};
use gradwire_transport::{Activity, Event, Events, LossReason, Peer, RegionKey};
use std::time::Instant;

/// `ECONNREFUSED`, `ECONNRESET` and `ETIMEDOUT`: what another network would say.
const REFUSED: i32 = 111;
const CUT: i32 = 104;
const TIMED_OUT: i32 = 110;
/// Greetings kept of one place, and places of which any are kept.
const GREETINGS: usize = 64;
const PLACES: usize = 1 << 16;

impl Mpi {
    pub(super) fn turn(&mut self, now: Instant, events: &mut Events) -> Result<Activity, Trouble> {
        let now = self.now.map_or(now, |last| last.max(now));
        self.now = Some(now);
        let before = events.len();
        events.extend(self.reports.drain(..));
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut moved = self.wire.turn(&mut arrived)?;
        for arrival in arrived.drain(..) {
            self.accept(arrival, now, events);
        }
        self.arrived = arrived;
        moved |= self.attend(now, events)?;
        events.extend(self.reports.drain(..));
        Ok(if moved || events.len() > before { Activity::Busy } else { Activity::Idle })
    }

    fn accept(&mut self, Arrival { source, content }: Arrival, now: Instant, events: &mut Events) {
        let Ok(buffer) = content else { return self.lose_rank(source, events) };
        if let Some((envelope, rest)) = Envelope::split(&buffer) {
            self.accept_frame(Place { rank: source, tag: envelope.tag }, &envelope, rest, now, events);
        }
        self.wire.recycle(buffer);
    }

    fn accept_frame(
        &mut self,
        from: Place,
        envelope: &Envelope,
        bytes: &[u8],
        now: Instant,
        events: &mut Events,
    ) {
        let frame =
            bytes.split_first_chunk().map(|(header, rest)| (Frame::decode(header, &self.limits), rest));
        let connection = envelope.connection;
        match &frame {
            Some((Ok(Frame::Handshake { step: HELLO, .. }), _)) => return self.greet(from, connection),
            Some((Ok(Frame::Handshake { step: GONE, .. }), _)) => return self.lose_place(from, events),
            _ => {}
        }
        let is_it = |state: &PeerState| state.place == from && state.remote == Some(connection);
        let Some(peer) = self.find(is_it) else {
            if matches!(frame, Some((Ok(Frame::Bye), _))) {
                self.forget_greeting(from, connection);
            }
            // Or it was sent before its sender knew that the connection is over.
            return;
        };
        let Some(state) = self.peers.get_mut(&peer) else { return };
        if envelope.to != 0 && envelope.to != state.own {
            return;
        }
        state.heard = Some(now);
        let offence = match frame {
            _ if !state.hear(envelope.consumed) => Some("it has taken what it was not sent"),
            None => Some("a message without a frame"),
            Some((Err(error), _)) => Some(error.offence()),
            Some((Ok(frame), rest)) if frame.payload() != rest.len() => {
                Some("a frame of another length than it says")
            }
            Some((Ok(frame), rest)) => self.follow(peer, &frame, rest, events),
        };
        if let Some(offence) = offence {
            self.lose(peer, LossReason::Protocol(offence), events);
            let _ = self.say(peer, &Frame::Handshake { step: RESET, len: 0 }, &[]);
        }
    }

    /// Does what a frame asks for. What is wrong with it.
    fn follow(
        &mut self,
        peer: Peer,
        frame: &Frame,
        bytes: &[u8],
        events: &mut Events,
    ) -> Option<&'static str> {
        let has_content = matches!(frame, Frame::Message { .. } | Frame::Put { .. });
        if has_content && !self.peers.get_mut(&peer)?.count_received() {
            return Some("more than its window has room for");
        }
        match *frame {
            Frame::Message { tag, .. } => events.push_received(peer, tag, bytes),
            Frame::Put { notice, key, offset, .. } => match self.place(&key, offset, bytes) {
                Ok(()) => events.extend(notice.map(|notice| Event::Notified(peer, notice))),
                Err(denied) => return denied.offence(),
            },
            Frame::Bye => {
                self.lose(peer, LossReason::Closed, events);
                // So that the peer forgets a greeting of ours that it has not answered.
                let _ = self.say(peer, &Frame::Bye, &[]);
            }
            Frame::Handshake { step: RESET, .. } => self.lose(peer, LossReason::Broken { code: CUT }, events),
            Frame::Heartbeat => {}
            _ => return Some("a frame of unknown kind"),
        }
        None
    }

    /// Writes what a put brings.
    fn place(&mut self, key: &RegionKey, offset: u64, bytes: &[u8]) -> Result<(), Denied> {
        let Span { region, offset, len } = self.regions.resolve(key, offset, bytes.len() as u64)?;
        let target = self.regions.bytes_mut(region, offset, len).map_err(|_| Denied::Revoked)?;
        target.copy_from_slice(bytes);
        Ok(())
    }

    /// Somebody wants to connect.
    fn greet(&mut self, from: Place, connection: u64) {
        match self.find(|state| state.place == from && state.remote.is_none()) {
            Some(peer) => {
                self.peers.entry(peer).and_modify(|state| state.remote = Some(connection));
                self.settle(peer);
            }
            None if self.greetings.len() < PLACES => {
                let greetings = self.greetings.entry(from).or_default();
                if greetings.len() < GREETINGS {
                    greetings.push_back(connection);
                }
            }
            None => {}
        }
    }

    fn forget_greeting(&mut self, from: Place, connection: u64) {
        if let Some(greetings) = self.greetings.get_mut(&from) {
            greetings.retain(|greeting| *greeting != connection);
        }
    }

    /// Reports a connection once both sides have greeted.
    pub(super) fn settle(&mut self, peer: Peer) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.remote.is_some()) else { return };
        if matches!(state.stage, Stage::Connecting { deadline: Some(_) }) {
            state.stage = Stage::Connected;
            (state.heard, state.spoke) = (self.now, self.now);
            self.reports.push(Event::Connected(peer));
        }
    }

    /// Does what is due for each peer. Whether anything was.
    fn attend(&mut self, now: Instant, events: &mut Events) -> Result<bool, Trouble> {
        let (mut lost, mut due, mut moved) = (Vec::new(), Vec::new(), false);
        for (peer, state) in self.peers.iter_mut().filter(|(_, state)| state.is_live()) {
            moved |= state.recovers();
            match &mut state.stage {
                _ if state.refusal.is_some() => {
                    lost.push((*peer, LossReason::Broken { code: state.refusal.unwrap_or_default() }));
                }
                Stage::Connecting { deadline: deadline @ None } => {
                    *deadline = Some(now + self.connect_timeout);
                    due.push((*peer, Frame::Handshake { step: HELLO, len: 0 }));
                }
                Stage::Connecting { deadline: Some(deadline) } if *deadline <= now => {
                    lost.push((*peer, LossReason::Unreachable { code: TIMED_OUT }));
                }
                Stage::Connected => {
                    let heard = *state.heard.get_or_insert(now);
                    let spoke = *state.spoke.get_or_insert(now);
                    if heard + self.silence <= now {
                        lost.push((*peer, LossReason::Silent(self.silence)));
                    } else if state.owes() || spoke + self.heartbeat <= now {
                        due.push((*peer, Frame::Heartbeat));
                    }
                }
                _ => {}
            }
        }
        for (peer, reason) in lost {
            self.lose(peer, reason, events);
            let _ = self.say(peer, &Frame::Bye, &[]);
        }
        for (peer, frame) in due {
            moved = true;
            self.say(peer, &frame, &[])?;
            self.settle(peer);
        }
        Ok(moved)
    }

    /// When something is to be done even if nothing arrives.
    pub(super) fn next_step(&self) -> Option<Instant> {
        let due = |state: &PeerState| match state.stage {
            Stage::Connecting { deadline } => deadline,
            Stage::Connected => {
                let heartbeat = state.spoke.map(|spoke| spoke + self.heartbeat);
                heartbeat.into_iter().chain(state.heard.map(|heard| heard + self.silence)).min()
            }
            Stage::Lost | Stage::Disconnected => None,
        };
        self.peers.values().filter_map(due).min()
    }

    /// An endpoint is gone.
    fn lose_place(&mut self, place: Place, events: &mut Events) {
        self.greetings.remove(&place);
        while let Some(peer) = self.find(|state| state.place == place) {
            let is_connected = self.peers.get(&peer).is_some_and(|state| state.stage == Stage::Connected);
            let reason = if is_connected {
                LossReason::Broken { code: 0 }
            } else {
                LossReason::Unreachable { code: REFUSED }
            };
            self.lose(peer, reason, events);
        }
    }

    /// A rank sends what no endpoint of ours would.
    fn lose_rank(&mut self, rank: i32, events: &mut Events) {
        while let Some(peer) = self.find(|state| state.place.rank == rank) {
            self.lose(peer, LossReason::Protocol("a frame longer than any may be"), events);
        }
    }

    fn lose(&mut self, peer: Peer, reason: LossReason, events: &mut Events) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.is_live()) else { return };
        state.stage = Stage::Lost;
        self.remotes.release_peer(peer);
        events.extend(self.reports.drain(..));
        events.push(Event::PeerLost(peer, reason));
    }

    /// The oldest living connection that fits. Several to one place are paired in the order they were asked for.
    fn find(&self, fits: impl Fn(&PeerState) -> bool) -> Option<Peer> {
        let fitting = self.peers.iter().filter(|(_, state)| state.is_live() && fits(state));
        fitting.min_by_key(|(_, state)| state.own).map(|(peer, _)| *peer)
    }
}
