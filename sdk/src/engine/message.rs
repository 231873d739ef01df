//! Point-to-point messages: matched by source and tag, in the order they were sent.
//!
//! A short message is sent unasked; a long one announces itself, and the receiver opens its buffer once it is
//! matched. What arrives before a receive is posted waits, within a budget that the sender keeps to: beyond it even
//! short messages only announce themselves.

use super::port::{Port, Process, Sent};
use super::slot::{Owner, Slots};
use super::transfer::{Breach, Incoming, Outgoing};
use super::{Key, Letter};
use crate::buffer::Span;
use gradwire_schema::{FrameHeader, FrameKind};
use gradwire_transport::Token;

/// Marks the sequence numbers of point-to-point transfers: the rest is the sender's operation.
pub(crate) const POINT_TO_POINT: u64 = 1 << 63;

/// What a receiver grants that does not want a message: the sender is done with it.
pub(crate) const REFUSED: u64 = u64::MAX;

/// Whose message a receive takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    pub(crate) source: Option<usize>,
    pub(crate) tag: Option<u32>,
}

impl Pattern {
    pub(crate) fn matches(self, source: usize, tag: u32) -> bool {
        self.source.is_none_or(|wanted| wanted == source) && self.tag.is_none_or(|wanted| wanted == tag)
    }
}

/// A message that has been sent to us, as far as it is known.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(crate) source: usize,
    pub(crate) process: Process,
    pub(crate) tag: u32,
    /// Fingerprint of the elements' type.
    pub(crate) kind: u64,
    pub(crate) len: usize,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Here(Vec<u8>),
    /// The sequence number under which the sender awaits our memory.
    Announced(u64),
}

/// A send under way.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) to: Process,
    pub(crate) header: FrameHeader,
    pub(crate) span: Span,
    pub(crate) state: SendingState,
}

#[derive(Debug)]
pub(crate) enum SendingState {
    Short,
    Announce,
    Long(Outgoing),
    Over,
}

impl Sending {
    pub(crate) fn advance(
        &mut self,
        key: Key,
        port: &mut dyn Port,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Breach> {
        match &mut self.state {
            SendingState::Short => {
                self.header.kind = FrameKind::Message;
                self.header.payload_len = self.span.len() as u64;
                scratch.clear();
                scratch.extend_from_slice(&self.header.encode());
                self.span.append_to(scratch);
                if port.send(self.to, scratch) == Sent::Taken {
                    self.state = SendingState::Over;
                }
            }
            SendingState::Announce => {
                self.header.kind = FrameKind::RequestToSend;
                self.header.sequence = POINT_TO_POINT | u64::from(key.0);
                self.header.offset = self.span.len() as u64;
                if port.send(self.to, &self.header.encode()) == Sent::Taken {
                    self.state =
                        SendingState::Long(Outgoing::new(self.to, Token(u64::from(key.0) << 32), self.span));
                }
            }
            SendingState::Long(outgoing) => {
                outgoing.advance(self.span.len(), port)?;
                if outgoing.is_over() {
                    self.state = SendingState::Over;
                }
            }
            SendingState::Over => {}
        }
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, SendingState::Over)
    }

    pub(crate) fn close(&mut self, port: &mut dyn Port) {
        if let SendingState::Long(outgoing) = &mut self.state {
            outgoing.close(port);
        }
    }
}

/// A receive under way.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) pattern: Pattern,
    pub(crate) span: Span,
    pub(crate) kind: u64,
    pub(crate) matched: Option<Matched>,
}

#[derive(Debug)]
pub(crate) struct Matched {
    pub(crate) source: usize,
    pub(crate) tag: u32,
    pub(crate) len: usize,
    pub(crate) kind: u64,
    incoming: Incoming,
    announced: Option<u64>,
    /// Announced, and not wanted.
    refused: bool,
}

impl Receiving {
    /// Whether the message fits, in type and length. One that does not is forgotten, and never sent if it only
    /// announced itself.
    pub(crate) fn fits(&self) -> bool {
        self.matched
            .as_ref()
            .is_none_or(|matched| matched.kind == self.kind && matched.len <= self.span.len())
    }

    pub(crate) fn take(&mut self, envelope: Envelope) -> Result<(), Breach> {
        let mut incoming = Incoming::new(envelope.process, envelope.len);
        let announced = match envelope.body {
            Body::Here(bytes) => {
                incoming.deliver(&bytes)?;
                None
            }
            Body::Announced(sequence) => Some(sequence),
        };
        let Envelope { source, tag, len, kind, .. } = envelope;
        self.matched = Some(Matched { source, tag, len, kind, incoming, announced, refused: false });
        Ok(())
    }

    pub(crate) fn advance(
        &mut self,
        key: Key,
        mut header: FrameHeader,
        port: &mut dyn Port,
        slots: &mut Slots,
        outbox: &mut Vec<Letter>,
    ) {
        let fits = self.fits();
        let Some(matched) = &mut self.matched else { return };
        let target = if fits { self.span.part(0..matched.len) } else { None };
        if let (Some(sequence), false) = (matched.announced, fits) {
            header.kind = FrameKind::Credit;
            (header.sequence, header.offset) = (sequence, REFUSED);
            outbox.push(Letter::new(matched.incoming.peer, header, &[]));
            matched.refused = true;
            return;
        }
        if let Some(sequence) = matched.announced
            && !matched.incoming.is_open()
            && !matched.incoming.is_over()
            && let Some(slot) = slots.take(Owner { operation: key, step: 0, source: 0 })
        {
            match matched.incoming.open(slot, target, port) {
                Some(opening) => {
                    header.kind = FrameKind::ReadyToReceive;
                    (header.sequence, header.slot) = (sequence, u32::from(slot));
                    outbox.push(Letter::new(matched.incoming.peer, header, &opening.encode()));
                }
                None => slots.give_back(slot),
            }
        }
        while let Some(segment) = matched.incoming.next() {
            if let (Some(bytes), Some(part)) =
                (segment.bytes, target.and_then(|span| span.part(segment.range)))
            {
                part.copy_from(bytes);
            }
            if let (Some(total), Some(sequence)) = (matched.incoming.consume(), matched.announced) {
                header.kind = FrameKind::Credit;
                (header.sequence, header.offset) = (sequence, total);
                outbox.push(Letter::new(matched.incoming.peer, header, &[]));
            }
        }
        if matched.incoming.is_over() {
            matched.incoming.close(port).into_iter().for_each(|slot| slots.give_back(slot));
        }
    }

    pub(crate) fn notified(&mut self, peer: Process, segment: u16) {
        if let Some(matched) = &mut self.matched
            && matched.incoming.peer == peer
        {
            matched.incoming.notified(segment);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.matched.as_ref().is_some_and(|matched| matched.refused || matched.incoming.is_over())
    }

    pub(crate) fn close(&mut self, port: &mut dyn Port, slots: &mut Slots) {
        if let Some(matched) = &mut self.matched {
            matched.incoming.close(port).into_iter().for_each(|slot| slots.give_back(slot));
        }
    }
}
