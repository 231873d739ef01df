//! How [`Tcp`] moves: write, look, read, check the clock.
//!
//! With few peers every turn tries to read each socket: one system call less than asking the poll set first. As
//! long as the caller does not sleep the sockets are not even in the set, because the set makes each arrival dearer;
//! [`prepare_sleep`](gradwire_transport::Transport::prepare_sleep) puts them in. With many peers they are always
//! in, and only those that are ready cost anything.

use crate::connection::Connection;
use crate::incoming::Surroundings;
use crate::peers::State;
use crate::poll::{Interest, Ready, Source};
use crate::transport::{LIMITS, Tcp};
use gradwire_transport::{Activity, Event, Events, TransportError};
use std::time::Instant;

/// Up to this many peers their sockets are read without asking the poll set whether that is worth while.
pub(crate) const FEW: usize = 4;
/// After so many turns without sleep, and each time again, the poll set is looked at all the same: for callers at the
/// door.
const GLANCE: u32 = 64;

impl Tcp {
    pub(crate) fn advance(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        let told = events.len();
        if !self.reports.is_empty() {
            events.extend(self.reports.drain(..));
        }
        let few = self.peers.len() <= FEW;
        let mut moved = !self.pending.is_empty() && self.write_pending(now, events, few);
        if !few || self.should_look() {
            if few && self.timers.unseen >= GLANCE {
                self.watch_all(|_| Interest::Nothing);
            }
            moved |= self.look(now, events)?;
        }
        if few {
            for slot in self.peers.slots() {
                moved |= self.read(slot, now, events);
            }
        }
        if self.timers.stale || self.timers.next.is_some_and(|next| now >= next) {
            self.forgive_deafness(now);
            self.tick(now, events);
        }
        self.timers.last_progress = Some(now);
        Ok(if moved || events.len() > told { Activity::Busy } else { Activity::Idle })
    }

    /// Remembers that a slot has output.
    pub(crate) fn note_output(&mut self, slot: u32) {
        let entry = self.peers.get_mut(slot);
        if let Some(connection) = entry.and_then(|entry| entry.state.connection_mut())
            && !std::mem::replace(&mut connection.listed, true)
        {
            self.pending.push(slot);
        }
    }

    /// Has the poll set watch all connections for what they are waiting for.
    pub(crate) fn watch_waiting(&mut self) -> bool {
        self.watch_all(|connection| if connection.has_output() { Interest::Both } else { Interest::Read })
    }

    /// Has the poll set watch connections that it does not watch yet.
    pub(crate) fn watch_unwatched(&mut self) {
        self.watch_all(|connection| match connection.watching() {
            Interest::Nothing => Interest::Read,
            watching => watching,
        });
    }

    /// Has the poll set watch each connection. `false`: it refused some.
    fn watch_all(&mut self, interest: impl Fn(&Connection) -> Interest) -> bool {
        let mut all = true;
        for slot in self.peers.slots() {
            let entry = self.peers.get_mut(slot);
            if let Some(connection) = entry.and_then(|entry| entry.state.connection_mut()) {
                all &= connection.watch(interest(connection), slot, &self.shared.poll);
            }
        }
        all
    }

    fn should_look(&mut self) -> bool {
        self.timers.unseen += 1;
        self.timers.unseen >= GLANCE || self.timers.watchful || !self.pending.is_empty()
    }

    /// Time in which nobody called `progress` is not the peers' silence.
    fn forgive_deafness(&mut self, now: Instant) {
        let last = self.timers.last_progress.unwrap_or(now);
        let deaf = now.saturating_duration_since(last).saturating_sub(self.shared.config.heartbeat);
        if !deaf.is_zero() {
            for entry in self.peers.entries_mut() {
                if let State::Open(connection) = &mut entry.state {
                    connection.forgive(deaf);
                }
            }
        }
    }

    fn write_pending(&mut self, now: Instant, events: &mut Events, few: bool) -> bool {
        let mut moved = false;
        let mut index = 0;
        while let Some(slot) = self.pending.get(index).copied() {
            moved |= self.write(slot, now, events, false);
            let entry = self.peers.get_mut(slot);
            match entry.and_then(|entry| entry.state.connection_mut()) {
                Some(connection) if connection.has_output() => {
                    // With few peers the next turn tries again; many are not worth a system call each.
                    if !few {
                        connection.watch(Interest::Both, slot, &self.shared.poll);
                    }
                    index += 1;
                }
                other => {
                    if let Some(connection) = other {
                        connection.listed = false;
                    }
                    self.pending.swap_remove(index);
                }
            }
        }
        moved
    }

    /// Writes to one peer, unless the poll set is to tell when.
    fn write(&mut self, slot: u32, now: Instant, events: &mut Events, told: bool) -> bool {
        let Some(entry) = self.peers.get_mut(slot) else { return false };
        let Some(connection) = entry.state.connection_mut() else { return false };
        if connection.watching() == Interest::Both && !told {
            return false;
        }
        let moved = connection.write(now, &self.regions, &mut self.done);
        if connection.watching() == Interest::Both && !connection.has_output() {
            connection.watch(Interest::Read, slot, &self.shared.poll);
        }
        events.extend(self.done.drain(..).map(Event::Done));
        self.say_farewell(slot, now, events);
        moved
    }

    /// Reads from one peer.
    fn read(&mut self, slot: u32, now: Instant, events: &mut Events) -> bool {
        let Some(entry) = self.peers.get_mut(slot) else { return false };
        match &mut entry.state {
            State::Open(connection) => {
                let mut around =
                    Surroundings { peer: entry.name, limits: &LIMITS, regions: &mut self.regions, events };
                match connection.read(now, &mut around) {
                    Ok(moved) => moved,
                    Err(reason) => {
                        self.lose(slot, reason, events);
                        true
                    }
                }
            }
            State::Closing { connection, .. } => {
                let over = connection.stream.discard();
                if over {
                    self.finish_leaving(slot, events);
                }
                over
            }
            State::Dialling(_) | State::Awaiting { .. } => false,
        }
    }

    /// Asks the poll set what is ready, and does it.
    fn look(&mut self, now: Instant, events: &mut Events) -> Result<bool, TransportError> {
        self.timers.unseen = 0;
        self.timers.watchful = self.timers.unsettled;
        let mut ready = std::mem::take(&mut self.ready);
        ready.clear();
        self.shared
            .poll
            .look(&mut ready)
            .map_err(|errno| TransportError::System { context: "epoll_wait", code: errno.raw_os_error() })?;
        let mut moved = false;
        for Ready { source, read, write } in ready.iter().copied() {
            moved |= match source {
                Source::Listener(index) => {
                    self.door.accept(index, now, &self.shared);
                    self.settle_soon()
                }
                Source::Stranger(index) => {
                    self.hear(index, now, events);
                    self.settle_soon()
                }
                Source::Peer(slot) if self.peers.is_dialled(slot) => self.settle_soon(),
                Source::Peer(slot) => {
                    let written = write && self.write(slot, now, events, true);
                    written | (read && self.read(slot, now, events))
                }
            };
        }
        self.ready = ready;
        Ok(moved)
    }
}
