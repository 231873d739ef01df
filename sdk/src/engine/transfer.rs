//! One message between two processes, long enough that its target opens memory for it first.
//!
//! The receiver says *ready* with a region's key: its own memory, into which everything may be put at once, or a window
//! of library memory, whose segments it grants again as it consumes them. The sender puts segment after segment;
//! each raises a notice that names the segment.

use super::port::{Port, Process, Sent, Staging};
use crate::buffer::{Private, Span};
use gradwire_schema::FrameHeader;
use gradwire_transport::{Notice, Put, Region, RegionKey, RemoteRegion, Token};
use std::ops::Range;

/// Bytes of a segment, or a few less, unless the message is so long that their number would not fit into a notice.
pub(crate) const SEGMENT: usize = 256 << 10;
/// Segments of a staging window.
const WINDOW: usize = 4;
/// Segments a notice can tell apart.
const MAX_SEGMENTS: usize = 1 << 16;

/// How a message is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    len: usize,
    segment: usize,
}

impl Cut {
    /// In segments that are a multiple of `unit`, the bytes of an element: each can be reduced by itself.
    pub(crate) fn new(len: usize, unit: usize) -> Self {
        let unit = unit.max(1);
        // Doubling keeps it a multiple.
        let mut segment = (SEGMENT / unit).max(1) * unit;
        while len.div_ceil(segment) > MAX_SEGMENTS {
            segment *= 2;
        }
        Self { len, segment }
    }

    pub(crate) fn segments(self) -> usize {
        self.len.div_ceil(self.segment)
    }

    pub(crate) fn range(self, segment: usize) -> Range<usize> {
        let start = segment * self.segment;
        start..(start + self.segment).min(self.len)
    }
}

/// What a ready message carries beside the header: how the receiver opened its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opening {
    pub(crate) key: RegionKey,
    /// Segments that the memory holds; the next one goes to the beginning again. All of them: the whole message.
    pub(crate) window: u32,
    /// Segments that may be put by now.
    pub(crate) granted: u32,
}

impl Opening {
    pub(crate) const LEN: usize = RegionKey::LEN + 8;

    pub(crate) fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..RegionKey::LEN].copy_from_slice(self.key.as_bytes());
        bytes[RegionKey::LEN..][..4].copy_from_slice(&self.window.to_le_bytes());
        bytes[RegionKey::LEN + 4..].copy_from_slice(&self.granted.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk::<{ RegionKey::LEN }>()?;
        let (window, granted) = rest.split_first_chunk::<4>()?;
        Some(Self {
            key: RegionKey::from_bytes(*key),
            window: u32::from_le_bytes(*window),
            granted: u32::from_le_bytes(granted.try_into().ok()?),
        })
    }
}

/// The sender's side.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) peer: Process,
    token: Token,
    span: Span,
    cut: Cut,
    state: Sending,
}

#[derive(Debug)]
enum Sending {
    /// Nothing heard from the receiver.
    Waiting,
    /// The receiver's key came, but what it names has not arrived yet.
    Opening {
        slot: u16,
        offset: usize,
        opening: Opening,
    },
    Putting {
        slot: u16,
        offset: usize,
        window: usize,
        granted: usize,
        remote: RemoteRegion,
        source: Region,
        posted: usize,
        done: usize,
    },
    Over,
}

/// A peer broke the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Breach(pub(crate) &'static str);

impl Outgoing {
    /// Both ends cut at the same `unit`.
    pub(crate) fn new(peer: Process, token: Token, span: Span, unit: usize) -> Self {
        let state = if span.len() == 0 { Sending::Over } else { Sending::Waiting };
        Self { peer, token, span, cut: Cut::new(span.len(), unit), state }
    }

    /// The receiver opened its memory.
    pub(crate) fn open(&mut self, header: &FrameHeader, opening: Opening) -> Result<(), Breach> {
        let segments = self.cut.segments();
        let valid = matches!(self.state, Sending::Waiting)
            && opening.window >= 1
            && opening.granted as usize <= segments
            && opening.granted <= opening.window;
        let (Ok(slot), Ok(offset), true) =
            (u16::try_from(header.slot), usize::try_from(header.offset), valid)
        else {
            return Err(Breach("it opened memory for a message in a way that makes no sense"));
        };
        self.state = Sending::Opening { slot, offset, opening };
        Ok(())
    }

    /// The receiver has room for more.
    pub(crate) fn credit(&mut self, total: u64) -> Result<(), Breach> {
        match &mut self.state {
            Sending::Putting { granted, window, done: _, posted: _, .. } => {
                let total = usize::try_from(total).unwrap_or(usize::MAX);
                if total > self.cut.segments() || total > granted.saturating_add(*window) {
                    return Err(Breach("it granted more than the message has"));
                }
                *granted = total.max(*granted);
                Ok(())
            }
            Sending::Opening { opening, .. } => {
                opening.granted = opening.granted.max(u32::try_from(total).unwrap_or(u32::MAX));
                if opening.granted as usize > self.cut.segments() {
                    return Err(Breach("it granted more than the message has"));
                }
                Ok(())
            }
            Sending::Waiting | Sending::Over => Ok(()),
        }
    }

    /// Puts what may be put: segments within the first `available` bytes. Whether anything happened.
    pub(crate) fn advance(&mut self, available: usize, port: &mut dyn Port) -> Result<bool, Breach> {
        let mut moved = false;
        if let Sending::Opening { slot, offset, opening } = self.state {
            // It comes later; or it was withdrawn since, by a receiver that gave up while we were not looking. The reason
            // follows in a message of its own, as does the loss of the peer.
            let Ok(remote) = port.import(self.peer, &opening.key) else { return Ok(false) };
            let Ok(source) = port.register(self.peer, self.span) else {
                port.release(self.peer, remote);
                return Ok(false);
            };
            self.state = Sending::Putting {
                slot,
                offset,
                window: opening.window as usize,
                granted: opening.granted as usize,
                remote,
                source,
                posted: 0,
                done: 0,
            };
            moved = true;
        }
        let Sending::Putting { slot, offset, window, granted, remote, source, ref mut posted, .. } =
            self.state
        else {
            return Ok(moved);
        };
        while *posted < granted {
            let range = self.cut.range(*posted);
            if range.end > available {
                break;
            }
            let put = Put {
                token: self.token,
                len: range.len(),
                source,
                source_offset: range.start,
                target: remote,
                target_offset: offset + (*posted % window) * self.cut.segment,
                notice: Some(Notice::new(slot, *posted as u16)),
            };
            if port.put(self.peer, &put) == Sent::Full {
                break;
            }
            *posted += 1;
            moved = true;
        }
        Ok(moved)
    }

    /// One of the puts is done.
    pub(crate) fn put_done(&mut self, port: &mut dyn Port) {
        if let Sending::Putting { ref mut done, .. } = self.state {
            *done += 1;
            if *done == self.cut.segments() {
                self.close(port);
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, Sending::Over)
    }

    /// Whether the receiver has not said anything.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.state, Sending::Waiting)
    }

    /// Whether it has something to do that could not be done yet.
    pub(crate) fn is_held_up(&self) -> bool {
        match self.state {
            Sending::Opening { .. } => true,
            Sending::Putting { posted, granted, .. } => posted < granted,
            Sending::Waiting | Sending::Over => false,
        }
    }

    /// Whether something has still to be put.
    pub(crate) fn is_wanting(&self) -> bool {
        match self.state {
            Sending::Waiting | Sending::Opening { .. } => true,
            Sending::Putting { posted, .. } => posted < self.cut.segments(),
            Sending::Over => false,
        }
    }

    /// Ends the transfer, wherever it stands.
    pub(crate) fn close(&mut self, port: &mut dyn Port) {
        if let Sending::Putting { remote, source, .. } = std::mem::replace(&mut self.state, Sending::Over) {
            port.deregister(self.peer, source);
            port.release(self.peer, remote);
        }
    }
}

/// The receiver's side.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) peer: Process,
    cut: Cut,
    place: Place,
    arrived: Vec<u64>,
    consumed: usize,
}

#[derive(Debug)]
enum Place {
    /// Nothing is there yet, or nothing any more.
    Nowhere,
    /// The whole message came by itself.
    Whole(Private),
    /// A window of library memory.
    Window { staging: Staging, slot: u16, segments: usize },
    /// The memory it is meant for.
    Direct { region: Region, slot: u16 },
}

impl Incoming {
    pub(crate) fn new(peer: Process, len: usize, unit: usize) -> Self {
        let cut = Cut::new(len, unit);
        Self { peer, cut, place: Place::Nowhere, arrived: vec![0; cut.segments().div_ceil(64)], consumed: 0 }
    }

    /// The whole message, sent unasked.
    pub(crate) fn deliver(&mut self, bytes: &[u8]) -> Result<(), Breach> {
        if !matches!(self.place, Place::Nowhere) || bytes.len() != self.cut.len {
            return Err(Breach("it sent a message of another length than the call has"));
        }
        self.place = Place::Whole(Private::copy_of(bytes));
        self.arrived.fill(u64::MAX);
        Ok(())
    }

    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.place, Place::Nowhere)
    }

    /// Opens memory for the message: `target` itself where the peer can reach it, else a window. Nothing when the
    /// system refuses; it is tried again.
    pub(crate) fn open(&mut self, slot: u16, target: Option<Span>, port: &mut dyn Port) -> Option<Opening> {
        let segments = self.cut.segments();
        if let Some(span) = target
            && let Ok(region) = port.register(self.peer, span)
        {
            if let Some(key) = port.export(self.peer, region) {
                self.place = Place::Direct { region, slot };
                let all = segments as u32;
                return Some(Opening { key, window: all, granted: all });
            }
            port.deregister(self.peer, region);
        }
        let window = segments.min(WINDOW);
        let staging = port.lend(self.peer, window * self.cut.segment).ok()?;
        self.place = Place::Window { staging, slot, segments: window };
        Some(Opening { key: staging.key, window: window as u32, granted: window as u32 })
    }

    /// A segment has arrived. Repeated notices change nothing.
    pub(crate) fn notified(&mut self, segment: u16) {
        let segment = usize::from(segment);
        if segment < self.cut.segments()
            && let Some(word) = self.arrived.get_mut(segment / 64)
        {
            *word |= 1 << (segment % 64);
        }
    }

    /// The bytes of the next segment, when they are here, and whether they already lie where they belong.
    pub(crate) fn next(&mut self) -> Option<Segment> {
        let segment = self.consumed;
        let here = self.arrived.get(segment / 64)? & 1 << (segment % 64) != 0;
        if !here || segment == self.cut.segments() {
            return None;
        }
        let range = self.cut.range(segment);
        let bytes = match &mut self.place {
            Place::Nowhere => return None,
            Place::Whole(private) => Some(private.span().part(range.clone())?),
            Place::Window { staging, segments, .. } => {
                let start = segment % *segments * self.cut.segment;
                Some(staging.span.part(start..start + range.len())?)
            }
            Place::Direct { .. } => None,
        };
        Some(Segment { range, bytes })
    }

    /// The next segment has been used. The total that the sender may be granted, when it grew.
    pub(crate) fn consume(&mut self) -> Option<u64> {
        self.consumed += 1;
        match self.place {
            Place::Window { segments, .. } if self.consumed + segments <= self.cut.segments() => {
                Some((self.consumed + segments) as u64)
            }
            _ => None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.consumed == self.cut.segments()
    }

    /// Whether something has still to arrive.
    pub(crate) fn is_wanting(&self) -> bool {
        let arrived: u32 = self.arrived.iter().map(|word| word.count_ones()).sum();
        (arrived as usize) < self.cut.segments()
    }

    /// Ends the transfer, wherever it stands; the slot to give back.
    pub(crate) fn close(&mut self, port: &mut dyn Port) -> Option<u16> {
        let clean = self.is_over();
        match std::mem::replace(&mut self.place, Place::Nowhere) {
            Place::Window { staging, slot, .. } => {
                port.reclaim(self.peer, staging, clean);
                Some(slot)
            }
            Place::Direct { region, slot } => {
                port.deregister(self.peer, region);
                Some(slot)
            }
            Place::Nowhere | Place::Whole(_) => None,
        }
    }
}

/// A piece of a message that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Which bytes of the message.
    pub(crate) range: Range<usize>,
    /// Where they lie; `None`: where they belong.
    pub(crate) bytes: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::{Cut, MAX_SEGMENTS, SEGMENT};

    /// Whatever the length, the segments lie end to end between elements, and a notice can name each.
    #[test]
    fn lengths_beyond_32_bits_are_cut_without_a_gap() {
        for len in [0, 1, SEGMENT + 1, (1 << 31) - 1, 1 << 31, (1 << 32) + 3, (1 << 34) + 1, (1 << 45) + 7] {
            for unit in [1, 16, 28, SEGMENT + 1] {
                let cut = Cut::new(len, unit);
                assert!(cut.segments() <= MAX_SEGMENTS);
                let mut end = 0;
                for segment in 0..cut.segments() {
                    let range = cut.range(segment);
                    assert!(range.start == end && range.end > end, "{len}: {range:?}");
                    assert!(range.start.is_multiple_of(unit), "{len} by {unit}: {range:?}");
                    end = range.end;
                }
                assert_eq!(end, len);
            }
        }
    }
}
