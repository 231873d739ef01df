//! One connection of the server: what has arrived so far, what is still to be sent.
#![forbid(unsafe_code)]

use crate::bootstrap::stream::Stream;
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::{ErrorKind, Result};
use std::sync::Arc;

/// A connection that is read and written as far as possible whenever it is ready.
#[derive(Debug)]
pub(super) struct Channel {
    stream: Stream,
    incoming: Vec<u8>,
    outgoing: VecDeque<Arc<[u8]>>,
    /// Bytes of the first outgoing message that are on their way.
    sent: usize,
}

impl Channel {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, incoming: Vec::new(), outgoing: VecDeque::new(), sent: 0 }
    }

    /// What to wait for on this connection.
    pub(super) fn interest(&self) -> PollFd<'_> {
        let writes = if self.is_flushed() { PollFlags::empty() } else { PollFlags::OUT };
        PollFd::new(&self.stream, PollFlags::IN | writes)
    }

    /// Sends a message as far as it goes now; the rest goes with [`Channel::flush`].
    pub(super) fn send(&mut self, message: Arc<[u8]>) -> Result<()> {
        self.outgoing.push_back(message);
        self.flush()
    }

    /// Sends what is left and fits.
    pub(super) fn flush(&mut self) -> Result<()> {
        while let Some(message) = self.outgoing.front() {
            match self.stream.write(&message[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.sent == message.len() {
                self.outgoing.pop_front();
                self.sent = 0;
            }
        }
        Ok(())
    }

    /// Whether nothing is left to send.
    pub(super) fn is_flushed(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Reads until `len` bytes of a message are there, or no more have arrived. Memory grows with the bytes
    /// that arrive, not with `len`.
    pub(super) fn receive(&mut self, len: usize) -> Result<Option<&[u8]>> {
        let mut piece = [0; 4096];
        while self.incoming.len() < len {
            let wanted = (len - self.incoming.len()).min(piece.len());
            match self.stream.read(&mut piece[..wanted]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.incoming.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(&self.incoming[..len]))
    }

    /// Forgets the message that was received.
    pub(super) fn consume(&mut self) {
        self.incoming.clear();
    }
}
