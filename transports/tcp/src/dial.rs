//! Getting through to one peer: its candidates in turn, again and again, until the deadline.

use crate::address::EndpointId;
use crate::handshake::{Handshake, Identity, Progress, Refusal};
use crate::poll::{Interest, Poll, Source};
use crate::socket::{Moved, Stream};
use crate::{TcpConfig, clock};
use gradwire_transport::LossReason;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The pause after the first round of candidates; it doubles with each round up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A peer listens before it tells its address. Where the system says for this long that nobody does, it is gone.
const ABANDONED: Duration = Duration::from_secs(1);

/// What all diallers and the door share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: TcpConfig,
    pub(crate) identity: Identity,
    pub(crate) poll: Poll,
}

/// Why one attempt came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// For good: whoever answers is not who was wanted.
    Refused(Refusal),
    /// It may work the next time.
    Broken(Errno),
}

/// Moves a handshake on as far as it goes now. Stops behind a proof, and before the first frame.
pub(crate) fn shake(
    stream: &Stream,
    handshake: &mut Handshake,
    identity: &Identity,
) -> Result<Progress, Failure> {
    loop {
        say(stream, handshake)?;
        let mut bytes = [0; Handshake::LONGEST];
        let wanted = handshake.wanted();
        let len = match stream.read(&mut bytes[..wanted]).map_err(Failure::Broken)? {
            Moved::Bytes(len) => len,
            Moved::Blocked => return Ok(Progress::Pending),
            Moved::End => return Err(Failure::Broken(Errno::CONNRESET)),
        };
        let progress = handshake.receive(&bytes[..len], identity).map_err(Failure::Refused)?;
        if progress != Progress::Pending {
            say(stream, handshake)?;
            return Ok(progress);
        }
    }
}

/// Writes what a handshake has to say. So few bytes always fit, unless the other side means ill.
pub(crate) fn say(stream: &Stream, handshake: &mut Handshake) -> Result<(), Failure> {
    while !handshake.output().is_empty() {
        match stream.write(handshake.output()).map_err(Failure::Broken)? {
            Moved::Bytes(len) => handshake.wrote(len),
            Moved::Blocked | Moved::End => return Err(Failure::Broken(Errno::AGAIN)),
        }
    }
    Ok(())
}

/// How dialling ended.
#[derive(Debug)]
pub(crate) enum Dialled {
    Pending,
    Connected(Stream),
    Lost(LossReason),
}

#[derive(Debug)]
pub(crate) struct Dial {
    peer: EndpointId,
    candidates: Vec<SocketAddr>,
    source: Source,
    /// The candidate whose turn it is.
    next: usize,
    attempt: Option<Attempt>,
    /// Not to be tried again before.
    resume: Option<Instant>,
    pause: Duration,
    deadline: Option<Instant>,
    /// How many candidates of this round were refused for good.
    hopeless: usize,
    /// How many candidates of this round had no listener.
    unattended: usize,
    /// Since when no round found a listener.
    abandoned: Option<Instant>,
    refused: Option<Refusal>,
    broken: Errno,
}

#[derive(Debug)]
struct Attempt {
    stream: Stream,
    handshake: Handshake,
    connecting: bool,
    deadline: Option<Instant>,
}

impl Dial {
    /// There is at least one candidate. `source` is what the poll set is to report.
    pub(crate) fn new(peer: EndpointId, candidates: Vec<SocketAddr>, source: Source) -> Self {
        Self {
            peer,
            candidates,
            source,
            next: 0,
            attempt: None,
            resume: None,
            pause: FIRST_PAUSE,
            deadline: None,
            hopeless: 0,
            unattended: 0,
            abandoned: None,
            refused: None,
            broken: Errno::TIMEDOUT,
        }
    }

    /// Begins with the first candidate before there is a clock, so that the poll set has something to report.
    /// Fails only where no other candidate would do better.
    pub(crate) fn start(&mut self, shared: &Shared) -> Result<(), Errno> {
        match self.begin(shared) {
            Err(Failure::Broken(errno @ (Errno::MFILE | Errno::NFILE))) => return Err(errno),
            Err(failure) => self.note(failure),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Does what can be done now.
    pub(crate) fn drive(&mut self, now: Instant, shared: &Shared) -> Dialled {
        let deadline = *self.deadline.get_or_insert(clock::after(now, shared.config.connect_timeout));
        loop {
            if now >= deadline {
                return Dialled::Lost(self.verdict());
            }
            if self.attempt.is_none() && self.resume.is_some_and(|resume| now < resume) {
                return Dialled::Pending;
            }
            let failure = match self.advance(now, shared) {
                Ok(false) => return Dialled::Pending,
                Ok(true) => match self.attempt.take() {
                    Some(attempt) => return Dialled::Connected(attempt.stream),
                    None => return Dialled::Pending,
                },
                Err(failure) => failure,
            };
            self.note(failure);
            if self.next == 0 && self.ends_hopeless_round(now) {
                return Dialled::Lost(self.verdict());
            }
        }
    }

    /// All candidates had their turn. Returns whether to give up; else pauses.
    fn ends_hopeless_round(&mut self, now: Instant) -> bool {
        let count = self.candidates.len();
        let hopeless = std::mem::take(&mut self.hopeless);
        let unattended = hopeless + std::mem::take(&mut self.unattended);
        self.abandoned = if unattended < count { None } else { self.abandoned.or(Some(now)) };
        self.resume = Some(clock::after(now, clock::jittered(self.pause)));
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        hopeless == count || self.abandoned.is_some_and(|since| now >= clock::after(since, ABANDONED))
    }

    /// When to drive it again, even if nothing becomes ready.
    pub(crate) fn due(&self) -> Option<Instant> {
        let attempt = self.attempt.as_ref();
        let step = attempt.map_or(self.resume, |attempt| attempt.deadline);
        [step, self.deadline].into_iter().flatten().min()
    }

    /// Moves the present attempt on, or begins one. Returns whether the peer has welcomed us.
    fn advance(&mut self, now: Instant, shared: &Shared) -> Result<bool, Failure> {
        if self.attempt.is_none() {
            self.begin(shared)?;
        }
        let Some(attempt) = &mut self.attempt else { return Ok(false) };
        let deadline = *attempt.deadline.get_or_insert(clock::after(now, shared.config.handshake_timeout));
        if attempt.connecting {
            match attempt.stream.dialled() {
                Some(result) => result.map_err(Failure::Broken)?,
                None if now >= deadline => return Err(Failure::Broken(Errno::TIMEDOUT)),
                None => return Ok(false),
            }
            if attempt.stream.is_its_own_peer() {
                return Err(Failure::Broken(Errno::CONNREFUSED));
            }
            attempt.connecting = false;
            let (stream, source) = (&attempt.stream, self.source);
            shared.poll.change(stream, source, Interest::Read).map_err(Failure::Broken)?;
        }
        match shake(&attempt.stream, &mut attempt.handshake, &shared.identity)? {
            Progress::Done => Ok(true),
            // The peer has proven itself; it may not have called `connect` yet. The overall deadline holds.
            _ if attempt.handshake.awaits_welcome() => {
                attempt.deadline = self.deadline;
                Ok(false)
            }
            _ if now >= deadline => Err(Failure::Broken(Errno::TIMEDOUT)),
            _ => Ok(false),
        }
    }

    fn begin(&mut self, shared: &Shared) -> Result<(), Failure> {
        let stream = Stream::dial(self.candidates[self.next]).map_err(Failure::Broken)?;
        let handshake = Handshake::dial(&shared.identity, self.peer).map_err(Failure::Refused)?;
        shared.poll.add(&stream, self.source, Interest::Write).map_err(Failure::Broken)?;
        self.attempt = Some(Attempt { stream, handshake, connecting: true, deadline: None });
        Ok(())
    }

    /// Ends the present attempt; it is the next candidate's turn.
    fn note(&mut self, failure: Failure) {
        match failure {
            Failure::Refused(refusal) => {
                self.refused = Some(refusal);
                self.hopeless += 1;
            }
            Failure::Broken(errno) => {
                self.broken = errno;
                self.unattended += usize::from(errno == Errno::CONNREFUSED);
            }
        }
        tracing::debug!(
            peer = ?self.peer, candidate = %self.candidates[self.next], ?failure, "could not get through"
        );
        self.attempt = None;
        self.next = (self.next + 1) % self.candidates.len();
    }

    fn verdict(&self) -> LossReason {
        match self.refused {
            Some(refusal) => LossReason::Refused(refusal.reason()),
            None => LossReason::Unreachable { code: self.broken.raw_os_error() },
        }
    }
}
