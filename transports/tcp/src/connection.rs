//! An established connection: both directions, and whether the other side is alive.

use crate::incoming::{Incoming, Surroundings};
use crate::outgoing::Outgoing;
use crate::poll::{Interest, Poll, Source};
use crate::socket::Stream;
use crate::{TcpConfig, clock};
use gradwire_transport::frame::Frame;
use gradwire_transport::region::Regions;
use gradwire_transport::{Limits, LossReason, Token};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How many bytes one connection may move in one direction before it is another's turn.
const TURN: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) outgoing: Outgoing,
    incoming: Incoming,
    heard: Instant,
    said: Instant,
    /// Whether it stands in the list of those with output.
    pub(crate) listed: bool,
    watching: Interest,
    /// Writing has failed. What the other side said before it went is still to be read.
    broken: Option<Errno>,
}

impl Connection {
    /// Over a stream that the poll set watches for something to read.
    pub(crate) fn new(stream: Stream, limits: &Limits, now: Instant) -> Self {
        let incoming = Incoming::new(limits);
        Self {
            stream,
            outgoing: Outgoing::default(),
            incoming,
            heard: now,
            said: now,
            listed: false,
            watching: Interest::Read,
            broken: None,
        }
    }

    /// Whether there is something to write, and a way to.
    pub(crate) fn has_output(&self) -> bool {
        !self.outgoing.is_empty() && self.broken.is_none()
    }

    /// Writes what can be written, and returns whether anything could.
    pub(crate) fn write(&mut self, now: Instant, regions: &Regions, done: &mut Vec<Token>) -> bool {
        match self.outgoing.write(&self.stream, regions, TURN, done) {
            Ok(0) => false,
            Ok(_) => {
                self.said = now;
                true
            }
            Err(errno) => {
                self.broken = Some(errno);
                true
            }
        }
    }

    /// Reads what can be read, and returns whether anything could.
    pub(crate) fn read(&mut self, now: Instant, around: &mut Surroundings<'_>) -> Result<bool, LossReason> {
        match self.incoming.read(&self.stream, TURN, around) {
            Ok(0) => match self.broken {
                Some(errno) => Err(LossReason::Broken { code: errno.raw_os_error() }),
                None => Ok(false),
            },
            Ok(_) => {
                self.heard = now;
                Ok(true)
            }
            Err(LossReason::Broken { code: 0 }) => {
                Err(LossReason::Broken { code: self.broken.map_or(0, Errno::raw_os_error) })
            }
            Err(reason) => Err(reason),
        }
    }

    /// Says a sign of life when it is time to, and tells whether the other side has been silent for too long.
    pub(crate) fn tick(&mut self, now: Instant, config: &TcpConfig) -> Result<(), LossReason> {
        let silent = now.saturating_duration_since(self.heard);
        if silent >= config.silence() {
            return Err(LossReason::Silent(silent));
        }
        if now.saturating_duration_since(self.said) >= config.heartbeat {
            if self.outgoing.is_empty() {
                self.outgoing.control(&Frame::Heartbeat);
            }
            self.said = now;
        }
        Ok(())
    }

    /// When `tick` has something to do, unless bytes move before.
    pub(crate) fn due(&self, config: &TcpConfig) -> Instant {
        clock::after(self.said, config.heartbeat).min(clock::after(self.heard, config.silence()))
    }

    /// Forgives silence for a time in which we did not listen.
    pub(crate) fn forgive(&mut self, deaf: Duration) {
        self.heard = clock::after(self.heard, deaf);
    }

    /// Has the poll set watch for something. `false`: it refused, and watches for nothing or what it did before.
    pub(crate) fn watch(&mut self, interest: Interest, slot: u32, poll: &Poll) -> bool {
        let source = Source::Peer(slot);
        let result = match (self.watching, interest) {
            (before, after) if before == after => return true,
            (Interest::Nothing, _) => poll.add(&self.stream, source, interest),
            (_, Interest::Nothing) => poll.remove(&self.stream),
            _ => poll.change(&self.stream, source, interest),
        };
        if result.is_ok() {
            self.watching = interest;
        }
        result.is_ok()
    }

    /// What the poll set watches for.
    pub(crate) fn watching(&self) -> Interest {
        self.watching
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Closes at once, in good order where the stream stands at the end of a frame.
    pub(crate) fn close(&self) {
        if self.outgoing.is_at_boundary() && self.broken.is_none() {
            let _ = self.stream.write(&Frame::Bye.encode());
        }
    }
}
