//! The first half of the server: strangers are kept out, ranks are seated until all are there.
#![forbid(unsafe_code)]

use super::channel::Channel;
use super::endpoint::Listener;
use super::frame::{Challenge, Join, MAGIC, VERSION, failure};
use super::host::Server;
use super::rounds::Member;
use super::seats::Seats;
use crate::Rank;
use crate::bootstrap::stream::wait_until;
use crate::secret::{JobSecret, random};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io::{Error, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

/// How long a connection may take to say who it is.
const HALF_OPEN: Duration = Duration::from_secs(5);
/// How many connections may be about to say it.
pub(super) const MAX_HALF_OPEN: usize = 128;
/// When all those slots are taken, the oldest has to leave for a newcomer after this time.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long to leave the listener alone when the system has no descriptor for another connection.
const NO_DESCRIPTOR: Duration = Duration::from_millis(50);
/// How long a start that has failed goes on telling so to ranks that have not heard it.
const LINGER: Duration = Duration::from_secs(1);

/// Who stands at the door, and who sits already.
#[derive(Debug)]
pub(super) struct Lobby<'a> {
    server: &'a Server,
    listener: &'a Listener,
    guests: Vec<Guest>,
    seats: Seats,
    failure: Option<Arc<[u8]>>,
    accept_from: Instant,
}

/// What became of a lobby.
#[derive(Debug)]
pub(super) enum Gathering {
    /// All ranks are there, in their order, and have yet to be welcomed.
    Complete(Vec<Member>),
    /// The start has failed, and the ranks were told why.
    Failed,
    /// The host no longer wants it.
    Stopped,
}

#[derive(Debug)]
struct Guest {
    channel: Channel,
    since: Instant,
    nonce: [u8; 32],
    state: State,
}

#[derive(PartialEq, Debug)]
enum State {
    /// Has not said who it is.
    Standing,
    Seated(Rank),
    /// Gets what is still to be sent, then goes.
    Leaving,
    Gone,
}

impl<'a> Lobby<'a> {
    pub(super) fn new(server: &'a Server, listener: &'a Listener) -> Self {
        let seats = Seats::new(server.rules.size);
        Self { server, listener, guests: Vec::new(), seats, failure: None, accept_from: Instant::now() }
    }

    /// Seats the ranks until all are there. `stop` becomes readable when the host has had enough.
    pub(super) fn gather(mut self, stop: &impl AsFd) -> Gathering {
        let mut leave_by = None;
        loop {
            let now = Instant::now();
            self.expire(now);
            if self.failure.is_none() && self.seats.is_complete() {
                return Gathering::Complete(self.members());
            }
            match (&self.failure, leave_by) {
                (None, Some(_)) => return Gathering::Stopped,
                (Some(_), Some(leave_by)) if leave_by <= now || self.has_told_all() => {
                    return Gathering::Failed;
                }
                _ => {}
            }
            let Ok((stopped, accept, ready)) = self.wait(stop, leave_by, now) else {
                return Gathering::Failed;
            };
            if stopped {
                leave_by = Some(now + LINGER);
            }
            for index in ready {
                self.serve(index);
            }
            if accept {
                self.accept(Instant::now());
            }
        }
    }

    /// Waits for the host's stop, a newcomer, guests that are ready, or the time to do something.
    fn wait(
        &self,
        stop: &impl AsFd,
        leave_by: Option<Instant>,
        now: Instant,
    ) -> std::io::Result<(bool, bool, Vec<usize>)> {
        let when = |condition| if condition { PollFlags::IN } else { PollFlags::empty() };
        let stop = PollFd::new(stop, when(leave_by.is_none()));
        let mut descriptors = vec![stop, PollFd::new(self.listener, when(self.may_accept(now)))];
        descriptors.extend(self.guests.iter().map(|guest| guest.channel.interest()));
        wait_until(&mut descriptors, self.next_expiry(now).into_iter().chain(leave_by).min())?;
        let is_ready = |index: usize| !descriptors[index].revents().is_empty();
        let ready = (0..self.guests.len()).filter(|index| is_ready(index + 2)).collect();
        Ok((is_ready(0), is_ready(1), ready))
    }

    fn standing(&self) -> impl Iterator<Item = &Guest> {
        self.guests.iter().filter(|guest| guest.state == State::Standing)
    }

    fn may_accept(&self, now: Instant) -> bool {
        let is_full = self.standing().count() >= MAX_HALF_OPEN;
        let oldest = self.standing().map(|guest| guest.since).min();
        let is_patient = oldest.is_some_and(|since| now < since + PATIENCE);
        self.accept_from <= now && !(is_full && is_patient)
    }

    /// Lets newcomers in, each with a fresh nonce.
    fn accept(&mut self, now: Instant) {
        while self.may_accept(now) {
            match self.listener.accept() {
                Ok(Some(stream)) => self.greet(Channel::new(stream), now),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if is_exhaustion(&error) => {
                    tracing::warn!("cannot take a connection now: {error}");
                    self.accept_from = now + NO_DESCRIPTOR;
                    return;
                }
                Err(error) => tracing::debug!("a connection ended before it was taken: {error}"),
            }
        }
    }

    fn greet(&mut self, mut channel: Channel, now: Instant) {
        if self.standing().count() >= MAX_HALF_OPEN
            && let Some(oldest) = self.guests.iter().position(|guest| guest.state == State::Standing)
        {
            self.guests.remove(oldest);
        }
        let nonce = match random() {
            Ok(nonce) => nonce,
            Err(error) => {
                self.fail(&error.to_string());
                return;
            }
        };
        let proof = u8::from(self.server.rules.key.is_some());
        let challenge = Challenge { magic: MAGIC, version: VERSION.into(), proof, reserved: [0; 21], nonce };
        if channel.send(Arc::from(challenge.as_bytes())).is_ok() {
            self.guests.push(Guest { channel, since: now, nonce, state: State::Standing });
        }
    }

    /// Does for one guest what can be done now.
    fn serve(&mut self, index: usize) {
        let guest = &mut self.guests[index];
        match guest.advance() {
            Ok(None) => {}
            Ok(Some(join)) => self.seat(index, &join),
            Err(error) => {
                tracing::debug!("a connection ended before the start was complete: {error}");
                if let State::Seated(rank) = guest.state {
                    self.seats.leave(rank, Instant::now());
                }
                guest.state = State::Gone;
            }
        }
    }

    /// Gives the guest the seat it asks for, or sends it or everybody away.
    fn seat(&mut self, index: usize, join: &Join) {
        let guest = &mut self.guests[index];
        if join.magic != MAGIC {
            guest.state = State::Gone;
            return;
        }
        if join.version.get() != VERSION {
            let theirs = join.version.get();
            let reason = format!("the rendezvous speaks version {VERSION}, this process version {theirs}");
            return guest.dismiss(Arc::from(failure(&reason)));
        }
        if self.server.rules.key.as_ref().is_some_and(|key| !proves(key, join, &guest.nonce)) {
            self.seats.refuse();
            return guest.dismiss(Arc::from(failure(WRONG_SECRET)));
        }
        self.seats.see(join);
        if let Some(failure) = &self.failure {
            return guest.dismiss(failure.clone());
        }
        match self.seats.take(join, Instant::now()) {
            Ok(rank) => {
                let earlier = self.guests.iter_mut().filter(|guest| guest.state == State::Seated(rank));
                earlier.for_each(|guest| guest.state = State::Gone);
                self.guests[index].state = State::Seated(rank);
            }
            Err(reason) => {
                let failure = self.fail(&reason);
                self.guests[index].dismiss(failure);
            }
        }
    }

    /// Ends the start for all who sit, and for those still to come.
    fn fail(&mut self, reason: &str) -> Arc<[u8]> {
        tracing::debug!("the start has failed: {reason}");
        let failure: Arc<[u8]> = Arc::from(failure(reason));
        let seated = self.guests.iter_mut().filter(|guest| matches!(guest.state, State::Seated(_)));
        seated.for_each(|guest| guest.dismiss(failure.clone()));
        self.failure.insert(failure).clone()
    }

    /// Does what time has brought about, and forgets those who are gone.
    fn expire(&mut self, now: Instant) {
        self.guests.retain(|guest| match guest.state {
            State::Seated(_) => true,
            State::Standing | State::Leaving => now < guest.since + HALF_OPEN,
            State::Gone => false,
        });
        if self.failure.is_none()
            && let Some(reason) = self.seats.expired(now)
        {
            self.fail(&reason);
        }
    }

    fn next_expiry(&self, now: Instant) -> Option<Instant> {
        let guests = self.guests.iter().filter_map(|guest| match guest.state {
            State::Seated(_) => None,
            State::Standing | State::Leaving => Some(guest.since + HALF_OPEN),
            State::Gone => Some(now),
        });
        let patience = self.standing().map(|guest| guest.since + PATIENCE).filter(|&at| at > now);
        let seats = self.seats.next_expiry().filter(|_| self.failure.is_none());
        let accept = (self.accept_from > now).then_some(self.accept_from);
        guests.chain(patience).chain(seats).chain(accept).min()
    }

    fn has_told_all(&self) -> bool {
        self.seats.has_seen_all() && self.guests.iter().all(|guest| guest.state == State::Standing)
    }

    /// Those who sit, in the order of their ranks; strangers are left behind.
    fn members(self) -> Vec<Member> {
        let mut seated: Vec<(Rank, Guest)> = self
            .guests
            .into_iter()
            .filter_map(|guest| match guest.state {
                State::Seated(rank) => Some((rank, guest)),
                _ => None,
            })
            .collect();
        seated.sort_by_key(|&(rank, _)| rank);
        let occupants = self.seats.into_occupants();
        seated
            .into_iter()
            .zip(occupants)
            .map(|((_, guest), occupant)| Member::new(guest.channel, guest.nonce, occupant))
            .collect()
    }
}

impl Guest {
    /// Sends and reads what can be: its `Join`, when it is complete.
    fn advance(&mut self) -> std::io::Result<Option<Join>> {
        self.channel.flush()?;
        match self.state {
            State::Standing => {
                let join = self.channel.receive(size_of::<Join>())?;
                let join = join.and_then(|bytes| Join::read_from_bytes(bytes).ok());
                if join.is_some() {
                    self.channel.consume();
                }
                Ok(join)
            }
            // It has nothing to say before it is welcomed: this is its end, or a breach.
            State::Seated(_) => match self.channel.receive(1)? {
                Some(_) => Err(Error::new(ErrorKind::InvalidData, "it spoke before it was welcomed")),
                None => Ok(None),
            },
            State::Leaving if self.channel.is_flushed() => Err(ErrorKind::ConnectionAborted.into()),
            State::Leaving | State::Gone => Ok(None),
        }
    }

    /// Tells it why it has to go.
    fn dismiss(&mut self, message: Arc<[u8]>) {
        let sent = self.channel.send(message);
        self.state = if sent.is_ok() && !self.channel.is_flushed() { State::Leaving } else { State::Gone };
    }
}

fn proves(key: &JobSecret, join: &Join, nonce: &[u8; 32]) -> bool {
    key.proves(&join.proof, JOIN_PROOF, &[nonce, join.proven()])
}

fn is_exhaustion(error: &Error) -> bool {
    let exhaustion = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|code| exhaustion.contains(&code))
}

const WRONG_SECRET: &str = "the secret of this process is not that of the job: GRADWIRE_SECRET_FILE must have the same content for all ranks";

/// What a rank proves with the job's secret, and what the server proves in return.
pub(super) const JOIN_PROOF: &str = "rendezvous join";
pub(super) const WELCOME_PROOF: &str = "rendezvous welcome";
