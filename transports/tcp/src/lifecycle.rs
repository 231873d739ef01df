//! How peers of [`Tcp`] come and go.

use crate::address::EndpointId;
use crate::clock;
use crate::connection::Connection;
use crate::dial::Dialled;
use crate::door::Caller;
use crate::peers::{Entry, State};
use crate::poll::{Interest, Source};
use crate::progress::FEW;
use crate::socket::Stream;
use crate::transport::{LIMITS, Tcp};
use gradwire_transport::frame::Frame;
use gradwire_transport::{Event, Events, FailReason, LossReason};
use rustix::io::Errno;
use std::time::Instant;

impl Tcp {
    /// Has the timers run in this turn: something may be due earlier than they know.
    pub(crate) fn settle_soon(&mut self) -> bool {
        self.timers.stale = true;
        true
    }

    /// Does what is due, and finds out when the next thing is.
    pub(crate) fn tick(&mut self, now: Instant, events: &mut Events) {
        self.timers.stale = false;
        self.door.tick(now, &self.shared);
        if self.peers.len() > FEW {
            self.watch_unwatched();
        }
        let mut next = self.door.due();
        for slot in self.peers.slots() {
            let due = self.tick_peer(slot, now, events);
            next = next.into_iter().chain(due).min();
        }
        self.timers.next = next;
        self.timers.unsettled = !self.door.is_quiet() || self.peers.are_unsettled();
        self.timers.watchful |= self.timers.unsettled;
    }

    /// Does what is due for one peer. Returns when it is to be seen again.
    fn tick_peer(&mut self, slot: u32, now: Instant, events: &mut Events) -> Option<Instant> {
        let entry = self.peers.get_mut(slot)?;
        let config = &self.shared.config;
        match &mut entry.state {
            State::Dialling(dial) => match dial.drive(now, &self.shared) {
                Dialled::Pending => return dial.due(),
                Dialled::Connected(stream) => return Some(self.open(slot, stream, now, events)),
                Dialled::Lost(reason) => self.lose(slot, reason, events),
            },
            State::Awaiting { deadline, refused } => {
                let deadline = *deadline.get_or_insert(clock::after(now, config.connect_timeout));
                if now < deadline {
                    self.door.welcome(entry.id, now);
                    return Some(deadline);
                }
                let reason = match refused {
                    Some(refusal) => LossReason::Refused(refusal.reason()),
                    None => LossReason::Unreachable { code: Errno::TIMEDOUT.raw_os_error() },
                };
                self.lose(slot, reason, events);
            }
            State::Open(connection) => match connection.tick(now, config) {
                Ok(()) => {
                    let due = connection.due(config);
                    if connection.has_output() {
                        self.note_output(slot);
                    }
                    return Some(due);
                }
                Err(reason) => self.lose(slot, reason, events),
            },
            State::Closing { deadline, .. } => {
                let deadline = *deadline.get_or_insert(clock::after(now, config.silence()));
                if now < deadline {
                    return Some(deadline);
                }
                self.finish_leaving(slot, events);
            }
        }
        None
    }

    /// Lets a stranger at the door say what it has to say.
    pub(crate) fn hear(&mut self, index: u32, now: Instant, events: &mut Events) {
        match self.door.hear(index, now, &self.shared) {
            // Who is proven waits until it is awaited; `tick` sees to that.
            None | Some(Caller::Proven) => {}
            Some(Caller::Ready(id, stream)) => {
                if let Some(slot) = self.awaited(id).map(|(slot, _)| slot) {
                    self.open(slot, stream, now, events);
                }
            }
            Some(Caller::Refused(id, refusal)) => {
                if let Some((_, entry)) = self.awaited(id) {
                    entry.state = match entry.state {
                        State::Awaiting { deadline, .. } => {
                            State::Awaiting { deadline, refused: Some(refusal) }
                        }
                        _ => return,
                    };
                }
            }
        }
    }

    /// The peer that is expected to call from the endpoint `id`.
    fn awaited(&mut self, id: EndpointId) -> Option<(u32, &mut Entry)> {
        let slot = self.peers.slot_of_endpoint(id)?;
        let entry = self.peers.get_mut(slot)?;
        matches!(entry.state, State::Awaiting { .. }).then_some((slot, entry))
    }

    /// Begins to exchange frames with a peer. Returns when it is to be seen again.
    fn open(&mut self, slot: u32, stream: Stream, now: Instant, events: &mut Events) -> Instant {
        let config = &self.shared.config;
        stream.tune(config.silence(), config.congestion.as_deref());
        let watched = self.shared.poll.change(&stream, Source::Peer(slot), Interest::Read);
        let connection = Connection::new(stream, &LIMITS, now);
        let due = connection.due(config);
        if let Some(entry) = self.peers.get_mut(slot) {
            entry.state = State::Open(Box::new(connection));
            events.push(Event::Connected(entry.name));
        }
        if let Err(errno) = watched {
            self.lose(slot, LossReason::Broken { code: errno.raw_os_error() }, events);
        }
        due
    }

    /// Ends a peer that was lost.
    pub(crate) fn lose(&mut self, slot: u32, reason: LossReason, events: &mut Events) {
        let Some(entry) = self.peers.lose(slot) else { return };
        tracing::debug!(peer = ?entry.name, id = ?entry.id, %reason, "peer lost");
        fail_all(entry.state, events);
        events.push(Event::PeerLost(entry.name, reason));
    }

    /// Of a peer that we have left: once its queue is empty, closes in good order.
    pub(crate) fn say_farewell(&mut self, slot: u32, now: Instant, events: &mut Events) {
        let Some(entry) = self.peers.get_mut(slot) else { return };
        let State::Closing { connection, finished, .. } = &mut entry.state else { return };
        if !*finished && connection.outgoing.is_empty() {
            *finished = true;
            connection.outgoing.control(&Frame::Bye);
            connection.write(now, &self.regions, &mut self.done);
        }
        if *finished && !connection.has_output() {
            connection.stream.finish();
        }
        if connection.is_broken() {
            self.finish_leaving(slot, events);
        }
    }

    /// Ends a peer that we have left.
    pub(crate) fn finish_leaving(&mut self, slot: u32, events: &mut Events) {
        if let Some(entry) = self.peers.leave(slot) {
            fail_all(entry.state, events);
        }
    }
}

fn fail_all(mut state: State, events: &mut Events) {
    if let Some(connection) = state.connection_mut() {
        let failed = connection.outgoing.abandon();
        failed.for_each(|token| events.push(Event::Failed(token, FailReason::PeerLost)));
    }
}
