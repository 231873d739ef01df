//! What one peer sends: frames taken from the socket, payloads of puts straight into their regions.
//!
//! A small buffer reads ahead for headers and messages. While the payload of a put is due, the socket is read
//! into the region, and only what follows it goes to the buffer. Nothing is allocated after the start: a message
//! is at most as long as the buffer, and a put lies in memory that we exported.

use crate::socket::{Moved, Stream};
use gradwire_transport::frame::Frame;
use gradwire_transport::region::{Regions, Span};
use gradwire_transport::{Event, Events, Limits, LossReason, Notice, Peer, RegionKey};
use rustix::io::Errno;
use std::fmt;
use std::io::IoSliceMut;

const HEADER: usize = Frame::HEADER_LEN;
/// How far to read ahead: enough for many small frames, little enough that copying it costs nothing beside a put.
const AHEAD: usize = 8 << 10;

/// What frames act on.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) peer: Peer,
    pub(crate) limits: &'a Limits,
    pub(crate) regions: &'a mut Regions,
    pub(crate) events: &'a mut Events,
}

/// What the next bytes of the stream are.
#[derive(Debug)]
enum Expected {
    /// A header, or what is missing of a message, to be read behind the bytes in the buffer.
    Frames { missing: usize },
    /// Payload of a put. The buffer is empty.
    Payload { rest: Span, notice: Option<Notice> },
    /// Payload of a put that came too late. The buffer is empty.
    Waste { len: usize },
}

/// The receiving half of a connection.
pub(crate) struct Incoming {
    expected: Expected,
    buffer: Box<[u8]>,
    /// The part of the buffer that holds bytes not yet understood.
    start: usize,
    end: usize,
}

impl Incoming {
    pub(crate) fn new(limits: &Limits) -> Self {
        let buffer = vec![0; HEADER + limits.send + AHEAD].into_boxed_slice();
        Self { expected: Expected::Frames { missing: 0 }, buffer, start: 0, end: 0 }
    }

    /// Reads and understands what there is, or about `budget` bytes of it. Returns how many bytes there were.
    pub(crate) fn read(
        &mut self,
        stream: &Stream,
        budget: usize,
        around: &mut Surroundings<'_>,
    ) -> Result<usize, LossReason> {
        let mut total = 0;
        while total < budget {
            let (moved, wanted) = self
                .fill(stream, budget - total, around.regions)
                .map_err(|errno| LossReason::Broken { code: errno.raw_os_error() })?;
            let len = match moved {
                Moved::Bytes(len) => len,
                Moved::Blocked => break,
                Moved::End => return Err(LossReason::Broken { code: 0 }),
            };
            total += len;
            self.account(len, around);
            self.understand(around)?;
            if len < wanted {
                break;
            }
        }
        Ok(total)
    }

    /// Reads once, to where the bytes belong. Also returns how many could have been read.
    fn fill(
        &mut self,
        stream: &Stream,
        budget: usize,
        regions: &mut Regions,
    ) -> Result<(Moved, usize), Errno> {
        if let Expected::Payload { rest, .. } = &self.expected {
            match regions.bytes_mut(rest.region, rest.offset, rest.len.min(budget)) {
                Ok(target) if target.len() < rest.len => {
                    let wanted = target.len();
                    return Ok((stream.read(target)?, wanted));
                }
                Ok(target) => {
                    let wanted = target.len() + AHEAD;
                    let mut slices = [IoSliceMut::new(target), IoSliceMut::new(&mut self.buffer[..AHEAD])];
                    return Ok((stream.read_vectored(&mut slices)?, wanted));
                }
                Err(_) => self.expected = Expected::Waste { len: rest.len },
            }
        }
        let space = match self.expected {
            Expected::Waste { len } => {
                let len = len.min(self.buffer.len());
                &mut self.buffer[..len]
            }
            Expected::Frames { missing } => {
                let wanted = missing.max(AHEAD);
                if self.buffer.len() - self.end < wanted {
                    self.buffer.copy_within(self.start..self.end, 0);
                    (self.start, self.end) = (0, self.end - self.start);
                }
                &mut self.buffer[self.end..][..wanted]
            }
            Expected::Payload { .. } => &mut [],
        };
        let wanted = space.len();
        Ok((stream.read(space)?, wanted))
    }

    /// Accounts for `len` bytes that `fill` has read.
    fn account(&mut self, len: usize, around: &mut Surroundings<'_>) {
        match &mut self.expected {
            Expected::Frames { .. } => self.end += len,
            Expected::Waste { len: rest } => {
                *rest -= len;
                if *rest == 0 {
                    self.expected = Expected::Frames { missing: 0 };
                }
            }
            Expected::Payload { rest, notice } => {
                let placed = len.min(rest.len);
                rest.offset += placed;
                rest.len -= placed;
                if rest.len == 0 {
                    around.notify(*notice);
                    self.expected = Expected::Frames { missing: 0 };
                    self.end = len - placed;
                }
            }
        }
    }

    /// Takes whole frames from the buffer.
    fn understand(&mut self, around: &mut Surroundings<'_>) -> Result<(), LossReason> {
        while let Expected::Frames { missing } = &mut self.expected {
            let held = &self.buffer[self.start..self.end];
            *missing = HEADER.saturating_sub(held.len());
            let Some((header, rest)) = held.split_first_chunk() else { break };
            let frame = Frame::decode(header, around.limits)
                .map_err(|error| LossReason::Protocol(error.offence()))?;
            match frame {
                Frame::Message { tag, len } => match rest.get(..len) {
                    Some(message) => {
                        around.events.push_received(around.peer, tag, message);
                        self.start += HEADER + len;
                    }
                    None => {
                        *missing = len - rest.len();
                        break;
                    }
                },
                Frame::Put { notice, key, offset, len } => {
                    let arrived = &rest[..rest.len().min(len)];
                    self.start += HEADER + arrived.len();
                    self.expected = around.begin(&key, offset, len, notice, arrived)?;
                }
                Frame::Heartbeat => self.start += HEADER,
                Frame::Bye => return Err(LossReason::Closed),
                Frame::Handshake { .. } => {
                    return Err(LossReason::Protocol("a handshake after the handshake"));
                }
                _ => return Err(LossReason::Protocol("a frame of unknown kind")),
            }
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        Ok(())
    }
}

impl Surroundings<'_> {
    /// Begins a put of which `arrived` is here already. Returns what comes next.
    fn begin(
        &mut self,
        key: &RegionKey,
        offset: u64,
        len: usize,
        notice: Option<Notice>,
        arrived: &[u8],
    ) -> Result<Expected, LossReason> {
        let missing = len - arrived.len();
        let expected = match self.regions.resolve(key, offset, len as u64) {
            Err(denied) => match denied.offence() {
                Some(offence) => return Err(LossReason::Protocol(offence)),
                None => Expected::Waste { len: missing },
            },
            Ok(span) => {
                if let Ok(target) = self.regions.bytes_mut(span.region, span.offset, arrived.len()) {
                    target.copy_from_slice(arrived);
                }
                if missing == 0 {
                    self.notify(notice);
                }
                let offset = span.offset + arrived.len();
                Expected::Payload { rest: Span { offset, len: missing, ..span }, notice }
            }
        };
        Ok(if missing == 0 { Expected::Frames { missing: 0 } } else { expected })
    }

    fn notify(&mut self, notice: Option<Notice>) {
        if let Some(notice) = notice {
            self.events.push(Event::Notified(self.peer, notice));
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("expected", &self.expected)
            .field("buffered", &(self.end - self.start))
            .finish_non_exhaustive()
    }
}
