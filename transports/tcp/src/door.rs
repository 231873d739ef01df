//! The door: who comes in, and who is sent away.
//!
//! A stranger costs a descriptor and a few hundred bytes for at most one handshake's time, and there are at most so
//! many of them; the oldest makes room for the newest. No stranger can make another wait.

use crate::address::EndpointId;
use crate::clock;
use crate::dial::{Failure, Shared, say, shake};
use crate::handshake::{Handshake, Progress, Refusal};
use crate::listen::Listeners;
use crate::poll::{Interest, Source};
use crate::socket::Stream;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How long to leave callers waiting when there are no descriptors for them.
const PAUSE: Duration = Duration::from_millis(100);
/// How many to accept before it is something else's turn.
const TURN: usize = 64;
/// Strangers are logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Door {
    listeners: Listeners,
    strangers: Vec<Option<Stranger>>,
    /// Out of descriptors: nobody is let in before.
    shut_until: Option<Instant>,
    next_log: Option<Instant>,
    unlogged: u64,
}

#[derive(Debug)]
struct Stranger {
    stream: Stream,
    handshake: Handshake,
    deadline: Instant,
    /// Who it is, once that is proven.
    proven: Option<EndpointId>,
}

/// What a stranger has become.
#[derive(Debug)]
pub(crate) enum Caller {
    /// Somebody of the job. It waits for [`Door::welcome`].
    Proven,
    /// This endpoint, welcomed; frames follow.
    Ready(EndpointId, Stream),
    /// Sent away, though it said that it was this endpoint.
    Refused(EndpointId, Refusal),
}

impl Door {
    pub(crate) fn new(listeners: Listeners, shared: &Shared) -> Result<Self, Errno> {
        for (index, listener) in listeners.sockets.iter().enumerate() {
            shared.poll.add(listener, Source::Listener(index as u32), Interest::Read)?;
        }
        Ok(Self { listeners, strangers: Vec::new(), shut_until: None, next_log: None, unlogged: 0 })
    }

    /// Lets callers in.
    pub(crate) fn accept(&mut self, listener: u32, now: Instant, shared: &Shared) {
        for _ in 0..TURN {
            if self.shut_until.is_some() {
                break;
            }
            let Some(socket) = self.listeners.sockets.get(listener as usize) else { break };
            match Stream::accept(socket) {
                Ok(stream) => self.admit(stream, now, shared),
                Err(Errno::AGAIN) => break,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => self.shut(now, shared),
                // The caller hung up while it waited, or the network did it.
                Err(_) => {}
            }
        }
    }

    /// A stranger has said something.
    pub(crate) fn hear(&mut self, index: u32, now: Instant, shared: &Shared) -> Option<Caller> {
        let index = index as usize;
        let stranger = self.strangers.get_mut(index)?.as_mut()?;
        let claimed = stranger.handshake.claimed();
        match shake(&stranger.stream, &mut stranger.handshake, &shared.identity) {
            Ok(Progress::Pending) => None,
            Ok(Progress::Proven(id)) => {
                stranger.proven = Some(id);
                if shared.config.secret.is_some() {
                    stranger.deadline = clock::after(now, shared.config.connect_timeout);
                }
                self.forget_older(id, index);
                Some(Caller::Proven)
            }
            Ok(Progress::Done) => {
                let stranger = self.remove(index)?;
                Some(Caller::Ready(stranger.proven?, stranger.stream))
            }
            Err(failure) => {
                self.send_away(index, failure, now);
                match (claimed, failure) {
                    (Some(id), Failure::Refused(refusal)) => Some(Caller::Refused(id, refusal)),
                    _ => None,
                }
            }
        }
    }

    /// Says welcome to `id`, if it waits for that.
    pub(crate) fn welcome(&mut self, id: EndpointId, now: Instant) {
        let Some(index) = self.find(id) else { return };
        let Some(stranger) = &mut self.strangers[index] else { return };
        stranger.handshake.welcome();
        if let Err(failure) = say(&stranger.stream, &mut stranger.handshake) {
            self.send_away(index, failure, now);
        }
    }

    /// Ends handshakes that take too long, and opens the door again.
    pub(crate) fn tick(&mut self, now: Instant, shared: &Shared) {
        for index in (0..self.strangers.len()).rev() {
            if self.strangers[index].as_ref().is_some_and(|stranger| now >= stranger.deadline) {
                self.send_away(index, Failure::Broken(Errno::TIMEDOUT), now);
            }
        }
        if self.shut_until.is_some_and(|until| now >= until) {
            self.shut_until = None;
            self.watch(Interest::Read, shared);
        }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let deadlines = self.strangers.iter().flatten().map(|stranger| stranger.deadline);
        deadlines.chain(self.shut_until).min()
    }

    /// Whether nobody stands at the door.
    pub(crate) fn is_quiet(&self) -> bool {
        self.strangers.is_empty()
    }

    fn find(&self, id: EndpointId) -> Option<usize> {
        let is_it = |stranger: &Option<Stranger>| stranger.as_ref().is_some_and(|s| s.proven == Some(id));
        self.strangers.iter().position(is_it)
    }

    fn admit(&mut self, stream: Stream, now: Instant, shared: &Shared) {
        self.make_room(now, shared);
        let free = self.strangers.iter().position(Option::is_none);
        let index = free.unwrap_or(self.strangers.len());
        if shared.poll.add(&stream, Source::Stranger(index as u32), Interest::Read).is_err() {
            return;
        }
        let deadline = clock::after(now, shared.config.handshake_timeout);
        let stranger = Some(Stranger { stream, handshake: Handshake::listen(), deadline, proven: None });
        match free {
            Some(index) => self.strangers[index] = stranger,
            None => self.strangers.push(stranger),
        }
    }

    /// Sends away the one who has been there longest if there are too many. Members of the job do not count.
    fn make_room(&mut self, now: Instant, shared: &Shared) {
        let has_secret = shared.config.secret.is_some();
        let half_open = |stranger: &Option<Stranger>| {
            let stranger = stranger.as_ref().filter(|stranger| !has_secret || stranger.proven.is_none());
            stranger.map(|stranger| stranger.deadline)
        };
        if self.strangers.iter().filter_map(half_open).count() < shared.config.half_open.max(1) {
            return;
        }
        let deadlines = self.strangers.iter().map(half_open).enumerate();
        if let Some((_, oldest)) = deadlines.filter_map(|(index, at)| at.map(|at| (at, index))).min() {
            self.send_away(oldest, Failure::Broken(Errno::CONNABORTED), now);
        }
    }

    /// Takes a stranger out, and its place away when it is the last.
    fn remove(&mut self, index: usize) -> Option<Stranger> {
        let stranger = self.strangers.get_mut(index)?.take();
        while let Some(None) = self.strangers.last() {
            self.strangers.pop();
        }
        stranger
    }

    /// A dialler that tries again has given its earlier attempt up.
    fn forget_older(&mut self, id: EndpointId, newest: usize) {
        let is_older = |stranger: &Option<Stranger>| stranger.as_ref().is_some_and(|s| s.proven == Some(id));
        for index in (0..self.strangers.len()).rev() {
            if index != newest && is_older(&self.strangers[index]) {
                self.remove(index);
            }
        }
    }

    fn send_away(&mut self, index: usize, failure: Failure, now: Instant) {
        let Some(mut stranger) = self.remove(index) else { return };
        if let Failure::Refused(refusal) = failure {
            stranger.handshake.reject(refusal);
            let _ = stranger.stream.write(stranger.handshake.output());
        }
        if self.may_log(now) {
            tracing::debug!(?failure, more = self.unlogged, "sent a caller away");
            self.unlogged = 0;
        } else {
            self.unlogged += 1;
        }
    }

    fn may_log(&mut self, now: Instant) -> bool {
        let may = self.next_log.is_none_or(|next| now >= next);
        if may {
            self.next_log = Some(clock::after(now, LOG_INTERVAL));
        }
        may
    }

    fn shut(&mut self, now: Instant, shared: &Shared) {
        if self.may_log(now) {
            tracing::warn!("no file descriptors left to let peers in: raise the limit with `ulimit -n`");
        }
        self.shut_until = Some(clock::after(now, PAUSE));
        self.watch(Interest::Nothing, shared);
    }

    fn watch(&self, interest: Interest, shared: &Shared) {
        for (index, listener) in self.listeners.sockets.iter().enumerate() {
            // To change what is in the set takes no memory, and so does not fail.
            let _ = shared.poll.change(listener, Source::Listener(index as u32), interest);
        }
    }
}
