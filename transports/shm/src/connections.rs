//! Who is connected, who is about to be, and who called.

use crate::MAX_SEND;
use crate::address::Name;
use crate::frame::Frame;
use crate::handshake::{Caller, Dial, Identity, Purpose, Step};
use crate::link::Link;
use crate::poller::{Poller, Ready};
use crate::regions::Announcement;
use crate::ring::Consumer;
use crate::socket;
use gradwire_transport::{Activity, ConnectError, Event, Events, LossReason, Peer, TransportError};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Connections {
    pub(crate) identity: Identity,
    listener: OwnedFd,
    poller: Poller,
    peers: BTreeMap<Peer, State>,
    /// Those who called and are not connected yet, by connection.
    callers: BTreeMap<u64, Guest>,
    /// Whose connection it is, of those we dialled or accepted.
    owners: BTreeMap<u64, Peer>,
    next_number: u64,
    last_poll: Option<Instant>,
    /// Descriptors ran out: callers wait until then.
    listener_rests: Option<Instant>,
    asleep: bool,
    patience: Patience,
}

/// How long and how many we put up with.
pub(crate) struct Patience {
    pub(crate) connect: Duration,
    pub(crate) handshake: Duration,
    pub(crate) half_open: usize,
}

enum State {
    /// We dial, or the peer does and we look from time to time whether it is there.
    Connecting {
        name: Name,
        purpose: Purpose,
        /// `None` between two attempts.
        dial: Option<(u64, Dial)>,
        retry: Retry,
        /// `None` until `progress` brings a clock.
        deadline: Option<Instant>,
    },
    Connected {
        number: u64,
        link: Box<Link>,
    },
    Lost,
    Disconnected,
}

struct Guest {
    caller: Caller,
    /// Until then it must have proven itself.
    deadline: Instant,
}

/// When to try again, later each time. `at` is `None` until `progress` brings a clock.
#[derive(Clone, Copy)]
struct Retry {
    at: Option<Instant>,
    pause: Duration,
}

impl Retry {
    const fn after(pause: Duration) -> Self {
        Self { at: None, pause }
    }

    /// Whether the time has come.
    fn is_due(&mut self, now: Instant) -> bool {
        let at = *self.at.get_or_insert(now + self.pause);
        if now < at {
            return false;
        }
        self.pause = (self.pause * 2).min(Self::LONGEST);
        self.at = Some(now + self.pause);
        true
    }

    const LONGEST: Duration = Duration::from_secs(2);
}

/// How often a caller that never sleeps looks at the sockets: a system call each time.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
const REDIAL: Duration = Duration::from_millis(10);
const PROBE: Duration = Duration::from_millis(500);
const LISTENER_REST: Duration = Duration::from_millis(100);
/// How many that have proven themselves may wait for our caller to ask for them.
const MAX_PROVEN: usize = 1024;

impl Connections {
    pub(crate) fn new(identity: Identity, patience: Patience) -> Result<Self, (&'static str, Errno)> {
        let listener =
            socket::listen(identity.name).map_err(|errno| ("listening on a Unix socket", errno))?;
        let poller = Poller::new(&listener, &identity.bell).map_err(|errno| ("epoll", errno))?;
        Ok(Self {
            identity,
            listener,
            poller,
            peers: BTreeMap::new(),
            callers: BTreeMap::new(),
            owners: BTreeMap::new(),
            next_number: 0,
            last_poll: None,
            listener_rests: None,
            asleep: false,
            patience,
        })
    }

    pub(crate) fn connect(&mut self, peer: Peer, name: Name) -> Result<(), ConnectError> {
        if name == self.identity.name {
            return Err(ConnectError::SelfConnect);
        }
        if self.peers.contains_key(&peer) {
            return Err(ConnectError::PeerReused);
        }
        // The one with the smaller name dials. Whether it can the other finds out by calling, too: what reaches it
        // is reached by it.
        let (purpose, pause) =
            if self.identity.name < name { (Purpose::Connect, REDIAL) } else { (Purpose::Probe, PROBE) };
        let dial = match self.dial(peer, name, purpose) {
            Ok(dial) => Some(dial),
            Err(Errno::AGAIN) => None,
            Err(errno) => return Err(unreachable_or_system(errno)),
        };
        let state = State::Connecting { name, purpose, dial, retry: Retry::after(pause), deadline: None };
        self.peers.insert(peer, state);
        Ok(())
    }

    pub(crate) fn disconnect(&mut self, peer: Peer) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        match std::mem::replace(state, State::Disconnected) {
            State::Connected { number, link } => {
                self.owners.remove(&number);
                link.close();
            }
            State::Connecting { dial: Some((number, _)), .. } => {
                self.owners.remove(&number);
            }
            _ => {}
        }
    }

    /// The connection to a peer; `Ok(None)` while it is being made.
    pub(crate) fn link(&mut self, peer: Peer) -> Result<Option<&mut Link>, TransportError> {
        match self.peers.get_mut(&peer) {
            Some(State::Connected { link, .. }) if link.end().is_some() => Err(TransportError::PeerLost),
            Some(State::Connected { link, .. }) => Ok(Some(link)),
            Some(State::Connecting { .. }) => Ok(None),
            Some(State::Lost) => Err(TransportError::PeerLost),
            Some(State::Disconnected) | None => Err(TransportError::NotConnected),
        }
    }

    /// Tells every connected peer.
    pub(crate) fn tell_all(&mut self, frame: Frame, descriptor: Option<&Arc<OwnedFd>>) {
        for state in self.peers.values_mut() {
            if let State::Connected { number, link } = state {
                link.tell(frame, descriptor.cloned());
                self.poller.watch_room(*number, &**link, link.has_mail());
            }
        }
    }

    pub(crate) fn progress(
        &mut self,
        now: Instant,
        announcements: &impl Fn() -> Vec<Announcement>,
        scratch: &mut [u8; MAX_SEND],
        events: &mut Events,
    ) -> Result<Activity, TransportError> {
        let slept = std::mem::take(&mut self.asleep);
        let (mut busy, mut rung) = (false, false);
        let mut settled = true;
        for (peer, state) in &mut self.peers {
            match state {
                State::Connected { link, .. } => {
                    rung |= slept && link.wake_up();
                    busy |= link.drain_ring(*peer, scratch, events);
                    settled &= link.end().is_none();
                }
                State::Connecting { .. } => settled = false,
                State::Lost | State::Disconnected => {}
            }
        }
        let due = self.last_poll.is_none_or(|last| now.saturating_duration_since(last) >= POLL_INTERVAL);
        if rung || due || !settled || !self.callers.is_empty() {
            self.last_poll = Some(now);
            let before = events.len();
            busy |= self.poll(now, announcements, events)?;
            self.claim(announcements, events);
            self.retry(now, events);
            self.bury(scratch, events);
            busy |= events.len() != before;
        }
        Ok(if busy { Activity::Busy } else { Activity::Idle })
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let guests =
            self.callers.values().filter(|guest| guest.caller.proven().is_none()).map(|guest| guest.deadline);
        let peers = self.peers.values().flat_map(|state| match state {
            State::Connecting { dial: None, retry, deadline, .. } => [retry.at, *deadline],
            State::Connecting { deadline, .. } => [None, *deadline],
            _ => [None; 2],
        });
        guests.chain(peers.flatten()).chain(self.listener_rests).min()
    }

    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    pub(crate) fn prepare_sleep(&mut self) -> bool {
        self.asleep = true;
        let mut quiet = true;
        for state in self.peers.values_mut() {
            match state {
                State::Connected { link, .. } => quiet &= link.fall_asleep(),
                // Their clocks start with the next `progress`.
                State::Connecting { deadline: None, .. }
                | State::Connecting { dial: None, retry: Retry { at: None, .. }, .. } => quiet = false,
                _ => {}
            }
        }
        quiet
    }

    /// Says goodbye to everyone.
    pub(crate) fn close(&mut self) {
        for state in std::mem::take(&mut self.peers).into_values() {
            if let State::Connected { link, .. } = state {
                link.close();
            }
        }
    }

    fn poll(
        &mut self,
        now: Instant,
        announcements: &impl Fn() -> Vec<Announcement>,
        events: &mut Events,
    ) -> Result<bool, TransportError> {
        let mut ready = [None; 64];
        let mut count = 0;
        self.poller
            .poll(|found| {
                ready[count] = Some(found);
                count += 1;
            })
            .map_err(|errno| TransportError::System { context: "epoll", code: errno.raw_os_error() })?;
        for found in ready.into_iter().flatten() {
            match found {
                Ready::Listener => self.accept(now),
                Ready::Bell => self.identity.bell.hush(),
                Ready::Connection(number) => match self.owners.get(&number) {
                    Some(&peer) => self.advance_peer(peer, announcements, events),
                    None => self.advance_guest(number),
                },
            }
        }
        if self.listener_rests.is_some_and(|until| now >= until) {
            self.listener_rests = None;
            self.poller.watch_listener(&self.listener, true);
        }
        self.callers.retain(|_, guest| guest.caller.proven().is_some() || now < guest.deadline);
        Ok(count > 0)
    }

    fn accept(&mut self, now: Instant) {
        // A bound per call: strangers must not keep us from our work.
        for _ in 0..64 {
            match socket::accept(&self.listener) {
                Ok(Some(socket)) => self.receive_guest(Caller::new(socket), now + self.patience.handshake),
                Ok(None) | Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    tracing::warn!(%errno, "cannot take a connection now; trying again in {LISTENER_REST:?}");
                    self.listener_rests = Some(now + LISTENER_REST);
                    self.poller.watch_listener(&self.listener, false);
                    return;
                }
            }
        }
    }

    fn receive_guest(&mut self, mut caller: Caller, deadline: Instant) {
        let strangers = self.callers.values().filter(|guest| guest.caller.proven().is_none()).count();
        if strangers >= self.patience.half_open
            && let Some((&oldest, _)) = self.callers.iter().find(|(_, guest)| guest.caller.proven().is_none())
        {
            tracing::debug!("too many callers that have not proven themselves: the oldest is dropped");
            self.callers.remove(&oldest);
        }
        if matches!(caller.advance(&self.identity), Step::Wait | Step::Done(()))
            && let Ok(number) = self.watch(&caller)
        {
            self.callers.insert(number, Guest { caller, deadline });
        }
    }

    fn advance_guest(&mut self, number: u64) {
        let Some(guest) = self.callers.get_mut(&number) else { return };
        let keep = match guest.caller.advance(&self.identity) {
            Step::Wait => true,
            Step::Done(()) => {
                self.callers.values().filter(|guest| guest.caller.proven().is_some()).count() <= MAX_PROVEN
            }
            Step::Broken => false,
            Step::Refused(reason) => {
                tracing::debug!(reason, "a caller was dropped");
                false
            }
            Step::System(code) => {
                tracing::debug!(code, "a caller was dropped");
                false
            }
        };
        if !keep {
            self.callers.remove(&number);
        }
    }

    fn advance_peer(
        &mut self,
        peer: Peer,
        announcements: &impl Fn() -> Vec<Announcement>,
        events: &mut Events,
    ) {
        match self.peers.get_mut(&peer) {
            Some(State::Connected { number, link }) => {
                link.drain_socket();
                if link.has_mail() && link.flush() {
                    self.poller.watch_room(*number, &**link, false);
                }
            }
            Some(State::Connecting { name, dial, .. }) => {
                let Some((number, attempt)) = dial else { return };
                let number = *number;
                let reason = match attempt.advance(&self.identity) {
                    Step::Wait => return,
                    Step::Done((inbox, outgoing, bell)) => {
                        let Some((_, attempt)) = dial.take() else { return };
                        let link =
                            Link::new(attempt.into_socket(), *name, Consumer::new(inbox), outgoing, bell);
                        return self.establish(peer, number, link, announcements, events);
                    }
                    Step::Broken => {
                        *dial = None;
                        None
                    }
                    Step::Refused(reason) => Some(LossReason::Refused(reason)),
                    Step::System(code) => Some(LossReason::Unreachable { code }),
                };
                self.owners.remove(&number);
                if let Some(reason) = reason {
                    self.lose(peer, reason, events);
                }
            }
            _ => {}
        }
    }

    /// Connects callers that have proven themselves with the peers that our caller asked for.
    fn claim(&mut self, announcements: &impl Fn() -> Vec<Announcement>, events: &mut Events) {
        let proven: Vec<_> = self
            .callers
            .iter()
            .filter_map(|(&number, guest)| Some((number, self.awaiting(guest.caller.proven()?)?)))
            .collect();
        for (number, peer) in proven {
            let Some(guest) = self.callers.remove(&number) else { continue };
            // Two calls of the same peer: the first one wins.
            if !matches!(self.peers.get(&peer), Some(State::Connecting { .. })) {
                continue;
            }
            match guest.caller.welcome(&self.identity) {
                Ok(link) => self.establish(peer, number, link, announcements, events),
                Err(code) => {
                    tracing::debug!(code, "a connection could not be completed; the peer may try again");
                }
            }
        }
    }

    fn awaiting(&self, caller: Name) -> Option<Peer> {
        self.peers.iter().find_map(|(&peer, state)| match state {
            State::Connecting { name, purpose: Purpose::Probe, .. } if *name == caller => Some(peer),
            _ => None,
        })
    }

    /// Dials again where a line broke off or has served, and gives up where time has run out.
    fn retry(&mut self, now: Instant, events: &mut Events) {
        let mut due = Vec::new();
        let mut late = Vec::new();
        for (&peer, state) in &mut self.peers {
            let State::Connecting { name, purpose, dial, retry, deadline } = state else { continue };
            if now >= *deadline.get_or_insert(now + self.patience.connect) {
                late.push(peer);
            } else if dial.is_none() && retry.is_due(now) {
                due.push((peer, *name, *purpose));
            }
        }
        for peer in late {
            self.lose(peer, LossReason::Unreachable { code: Errno::TIMEDOUT.raw_os_error() }, events);
        }
        for (peer, name, purpose) in due {
            match self.dial(peer, name, purpose) {
                Ok(attempt) => {
                    if let Some(State::Connecting { dial, .. }) = self.peers.get_mut(&peer) {
                        *dial = Some(attempt);
                    }
                }
                Err(Errno::AGAIN) => {}
                Err(errno) => self.lose(peer, LossReason::Unreachable { code: errno.raw_os_error() }, events),
            }
        }
    }

    fn dial(&mut self, peer: Peer, name: Name, purpose: Purpose) -> Result<(u64, Dial), Errno> {
        let dial = Dial::new(&self.identity, name, purpose)?;
        let number = self.watch(&dial)?;
        self.owners.insert(number, peer);
        Ok((number, dial))
    }

    /// Reports the dead, after everything they had sent.
    fn bury(&mut self, scratch: &mut [u8; MAX_SEND], events: &mut Events) {
        for (&peer, state) in &mut self.peers {
            let State::Connected { number, link } = state else { continue };
            if link.end().is_none() {
                continue;
            }
            link.drain_ring(peer, scratch, events);
            if let Some(reason) = link.end() {
                events.push(Event::PeerLost(peer, reason.clone()));
            }
            self.owners.remove(number);
            *state = State::Lost;
        }
    }

    fn establish(
        &mut self,
        peer: Peer,
        number: u64,
        mut link: Link,
        announcements: &impl Fn() -> Vec<Announcement>,
        events: &mut Events,
    ) {
        for (frame, descriptor) in announcements() {
            link.tell(frame, descriptor);
        }
        self.poller.watch_room(number, &link, link.has_mail());
        if let Some(State::Connecting { dial: Some((probe, _)), .. }) = self.peers.get(&peer) {
            self.owners.remove(probe);
        }
        self.owners.insert(number, peer);
        self.peers.insert(peer, State::Connected { number, link: Box::new(link) });
        events.push(Event::Connected(peer));
    }

    fn lose(&mut self, peer: Peer, reason: LossReason, events: &mut Events) {
        if let Some(State::Connecting { dial: Some((number, _)), .. }) = self.peers.insert(peer, State::Lost)
        {
            self.owners.remove(&number);
        }
        events.push(Event::PeerLost(peer, reason));
    }

    /// A number for a new connection, under which the poller speaks of it.
    fn watch(&mut self, socket: impl AsFd) -> Result<u64, Errno> {
        let number = self.next_number;
        self.poller.add(number, socket)?;
        self.next_number += 1;
        Ok(number)
    }
}

/// No listener there, or one that is not ours to reach: another path must be tried.
fn unreachable_or_system(errno: Errno) -> ConnectError {
    let code = errno.raw_os_error();
    match errno {
        Errno::CONNREFUSED | Errno::ACCESS | Errno::PERM | Errno::NOENT => ConnectError::Unreachable { code },
        _ => ConnectError::System { context: "calling a process of this host", code },
    }
}
