//! The sender's end of a message.

use super::super::Letter;
use super::super::port::{Port, Process, Sent};
use super::super::transfer::{Breach, Opening, Outgoing};
use super::lane::Departure;
use super::{Head, Key, OVER, POINT_TO_POINT, READ, READABLE};
use crate::Rank;
use crate::buffer::{Private, Span};
use gradwire_schema::{FrameHeader, FrameKind};
use gradwire_transport::Token;

/// The bytes of a message.
#[derive(Debug)]
pub(crate) enum Payload {
    /// The caller's memory, until the operation has ended.
    Lent(Span),
    /// A copy, one of those that together may have so many bytes.
    Buffered(Private, usize),
}

/// A send under way.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) to: Rank,
    pub(crate) process: Process,
    header: FrameHeader,
    span: Span,
    /// What the span lies in, where it is not the caller's.
    buffered: Option<Private>,
    /// Over only once the receiver has matched it.
    synchronous: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing has left yet.
    Queued,
    /// Announced.
    Long(Outgoing),
    /// All has left; the receiver says when it is matched.
    Unmatched,
    Over,
}

impl Sending {
    /// `header`: communicator, rank, tag and kind of element.
    pub(crate) fn new(
        (to, process): (Rank, Process),
        header: FrameHeader,
        payload: Payload,
        synchronous: bool,
    ) -> Self {
        let (span, buffered) = match payload {
            Payload::Lent(span) => (span, None),
            Payload::Buffered(mut private, _) => (private.span(), Some(private)),
        };
        Self { to, process, header, span, buffered, synchronous, state: State::Queued }
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Bytes that the library keeps for it.
    pub(crate) fn buffered(&self) -> Option<usize> {
        self.buffered.as_ref().map(Private::len)
    }

    pub(crate) fn is_synchronous(&self) -> bool {
        self.synchronous
    }

    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.state, State::Queued)
    }

    /// What is known of a message of process `own` to itself.
    pub(super) fn head(&self, own: Process, key: Key) -> Head {
        Head {
            source: self.to,
            process: own,
            tag: self.header.tag,
            kind: self.header.signature,
            len: self.span.len(),
            sequence: self.awaited(key),
            offer: None,
        }
    }

    /// Leaves like this, if the transport takes it.
    pub(super) fn depart(
        &mut self,
        key: Key,
        departure: Departure,
        port: &mut dyn Port,
        scratch: &mut Vec<u8>,
    ) -> Sent {
        let token = Token(u64::from(key.0) << 32);
        match departure {
            Departure::Whole => {
                let mut header = self.header;
                header.kind = FrameKind::Message;
                header.sequence = self.awaited(key);
                header.payload_len = self.span.len() as u64;
                scratch.clear();
                scratch.extend_from_slice(&header.encode());
                self.span.append_to(scratch);
            }
            Departure::Announced => {
                let is_offered = READABLE.contains(&self.span.len()) && port.can_read(self.process);
                let address = (self.span.address().as_ptr().expose_provenance() as u64).to_le_bytes();
                let payload = if is_offered { &address[..] } else { &[] };
                Letter::write(scratch, self.request(key, self.span.len() as u64), payload);
            }
        }
        let sent = port.send(self.process, scratch);
        if sent == Sent::Taken {
            self.state = match departure {
                Departure::Announced => State::Long(Outgoing::new(self.process, token, self.span, 1)),
                Departure::Whole => self.left(),
            };
        }
        sent
    }

    /// The bytes lie in this process's own mailbox.
    pub(super) fn deposited(&mut self) {
        self.state = self.left();
    }

    /// The receiver opened its memory, or has room for more, or wants no more. What to answer, if it wants to hear something.
    pub(super) fn answered(
        &mut self,
        process: Process,
        key: Key,
        header: &FrameHeader,
        payload: &[u8],
        port: &mut dyn Port,
    ) -> Result<Option<FrameHeader>, Breach> {
        if process != self.process {
            return Err(Breach("it answered a message that was not for it"));
        }
        let over = header.kind == FrameKind::Credit && header.offset == OVER;
        let read = header.kind == FrameKind::Credit && header.offset == READ;
        match &mut self.state {
            State::Unmatched if over => self.state = State::Over,
            State::Long(outgoing) if over => outgoing.close(port),
            State::Long(outgoing) if read && outgoing.is_unanswered() => {
                outgoing.close(port);
                return Ok(Some(self.request(key, READ)));
            }
            State::Long(outgoing) if header.kind == FrameKind::Credit => outgoing.credit(header.offset)?,
            State::Long(outgoing) => {
                let opening = Opening::decode(payload).ok_or(Breach("its region key is cut off"))?;
                outgoing.open(header, opening)?;
            }
            _ => return Err(Breach("it answered a message that awaits no answer")),
        }
        Ok(None)
    }

    pub(crate) fn advance(&mut self, port: &mut dyn Port) -> Result<(), Breach> {
        if let State::Long(outgoing) = &mut self.state {
            outgoing.advance(self.span.len(), port)?;
            if outgoing.is_over() {
                self.state = State::Over;
            }
        }
        Ok(())
    }

    pub(crate) fn put_done(&mut self, port: &mut dyn Port) {
        if let State::Long(outgoing) = &mut self.state {
            outgoing.put_done(port);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Whether it has something to do that could not be done yet.
    pub(crate) fn is_held_up(&self) -> bool {
        matches!(&self.state, State::Long(outgoing) if outgoing.is_held_up())
    }

    /// Whether the receiver has still to do something.
    pub(crate) fn is_wanting(&self) -> bool {
        match &self.state {
            State::Long(outgoing) => outgoing.is_wanting(),
            State::Queued | State::Unmatched => true,
            State::Over => false,
        }
    }

    /// Ends it, wherever it stands. What to tell the receiver, when it has been announced in vain.
    pub(crate) fn close(&mut self, key: Key, port: &mut dyn Port) -> Option<FrameHeader> {
        let State::Long(outgoing) = &mut self.state else { return None };
        let given_up = !outgoing.is_over();
        outgoing.close(port);
        given_up.then(|| self.request(key, OVER))
    }

    /// Says something of a message that leaves announced: its length, or what has become of it.
    fn request(&self, key: Key, offset: u64) -> FrameHeader {
        let mut header = self.header;
        header.kind = FrameKind::RequestToSend;
        (header.sequence, header.offset) = (name(key), offset);
        header
    }

    /// The sequence number under which it awaits an answer even when it leaves whole; 0: it awaits none.
    fn awaited(&self, key: Key) -> u64 {
        if self.synchronous { name(key) } else { 0 }
    }

    fn left(&self) -> State {
        if self.synchronous { State::Unmatched } else { State::Over }
    }
}

/// The sequence number of the frames of a send.
fn name(key: Key) -> u64 {
    POINT_TO_POINT | u64::from(key.0)
}
