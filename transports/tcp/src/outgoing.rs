//! What one peer is still to be sent: a bounded queue that is written with vectored I/O.
//!
//! Messages and small puts are copied into one ring of bytes, so that any number of them leaves in one system
//! call. The payload of a larger put goes from its region to the socket. Such a put is sent as two frames, the
//! bytes and then, empty, the notice: when its source is revoked half-way, zeros fill up the first frame and the
//! second is left out.

use crate::socket::{Moved, Stream};
use gradwire_transport::frame::Frame;
use gradwire_transport::region::Regions;
use gradwire_transport::{Notice, Posted, Region, RegionKey, Tag, Token};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::IoSlice;

const HEADER: usize = Frame::HEADER_LEN;
/// Payloads of puts up to this size are copied: one more slice in a system call costs about as much.
const SMALL: usize = 512;
/// Bytes that the ring may hold before it is full.
const RING: usize = 256 << 10;
/// Slices in one system call.
const SLICES: usize = 32;
/// What stands in for a source that was revoked.
static FILLING: [u8; 64 << 10] = [0; 64 << 10];

/// A put, ready to be queued.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) token: Token,
    pub(crate) source: Region,
    pub(crate) source_offset: usize,
    pub(crate) len: usize,
    pub(crate) key: RegionKey,
    pub(crate) target_offset: u64,
    pub(crate) notice: Option<Notice>,
}

#[derive(Debug)]
enum Item {
    /// The next `len` bytes of the ring; when they have left, `done` is done.
    Ring {
        len: usize,
        done: Option<Token>,
    },
    Put(LargePut),
}

#[derive(Debug)]
struct LargePut {
    header: [u8; HEADER],
    /// Gone, as are trailer and token, once the source was revoked half-way.
    source: Option<Region>,
    offset: usize,
    len: usize,
    /// The empty put that carries the notice.
    trailer: Option<[u8; HEADER]>,
    token: Option<Token>,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    items: VecDeque<Item>,
    /// How many bytes of the first item have left.
    written: usize,
    ring: VecDeque<u8>,
    puts: usize,
}

impl Outgoing {
    /// The most puts under way.
    pub(crate) const PUTS: usize = 256;

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether what has left so far ends with a whole frame.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.written == 0
    }

    pub(crate) fn message(&mut self, tag: Tag, bytes: &[u8]) -> Posted {
        if self.ring.len() + HEADER + bytes.len() > RING {
            return Posted::Full;
        }
        self.stage(&Frame::Message { tag, len: bytes.len() }, bytes, None);
        Posted::Queued
    }

    /// A heartbeat or a farewell; these always fit.
    pub(crate) fn control(&mut self, frame: &Frame) {
        self.stage(frame, &[], None);
    }

    /// Takes a put whose source range was checked.
    pub(crate) fn put(&mut self, put: &Outbound, regions: &Regions) -> Posted {
        if self.puts == Self::PUTS || self.ring.len() + HEADER + SMALL > RING {
            return Posted::Full;
        }
        let frame = |notice, offset, len| Frame::Put { notice, key: put.key, offset, len };
        if put.len <= SMALL
            && let Ok(bytes) = regions.bytes(put.source, put.source_offset, put.len)
        {
            self.stage(&frame(put.notice, put.target_offset, put.len), bytes, Some(put.token));
        } else {
            self.items.push_back(Item::Put(LargePut {
                header: frame(None, put.target_offset, put.len).encode(),
                source: Some(put.source),
                offset: put.source_offset,
                len: put.len,
                trailer: put.notice.map(|notice| frame(Some(notice), put.target_offset, 0).encode()),
                token: Some(put.token),
            }));
        }
        self.puts += 1;
        Posted::Queued
    }

    /// Writes until the socket takes no more, the queue is empty or `budget` bytes have left. Returns how many
    /// have, and appends the operations that are done.
    pub(crate) fn write(
        &mut self,
        stream: &Stream,
        regions: &Regions,
        budget: usize,
        done: &mut Vec<Token>,
    ) -> Result<usize, Errno> {
        let mut total = 0;
        while !self.items.is_empty() && total < budget {
            let mut batch = Batch::new(budget - total);
            self.gather(&mut batch, regions);
            let wanted = batch.len;
            let Moved::Bytes(len) = stream.write_vectored(&batch.slices[..batch.count])? else { break };
            total += len;
            self.advance(len, done);
            if len < wanted {
                break;
            }
        }
        Ok(total)
    }

    /// Stops reading from a region and appends the puts that fail by it. Those that have not begun are dropped; of
    /// one that has, the rest is filled up.
    pub(crate) fn revoke(&mut self, region: Region, failed: &mut Vec<Token>) {
        let begun = usize::from(self.written > 0);
        if let Some(Item::Put(put)) = self.items.front_mut()
            && put.source == Some(region)
            && (1..HEADER + put.len).contains(&self.written)
        {
            (put.source, put.trailer) = (None, None);
            failed.extend(put.token.take());
        }
        let before = self.items.len();
        let mut index = 0;
        self.items.retain(|item| {
            index += 1;
            match item {
                Item::Put(put) if index > begun && put.source == Some(region) => {
                    failed.extend(put.token);
                    false
                }
                _ => true,
            }
        });
        self.puts -= before - self.items.len();
    }

    /// Ends the queue: the operations that will never be done.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Token> {
        self.ring.clear();
        self.written = 0;
        self.puts = 0;
        self.items.drain(..).filter_map(|item| match item {
            Item::Ring { done, .. } => done,
            Item::Put(put) => put.token,
        })
    }

    fn stage(&mut self, frame: &Frame, payload: &[u8], done: Option<Token>) {
        self.ring.extend(&frame.encode());
        self.ring.extend(payload);
        let added = HEADER + payload.len();
        match self.items.back_mut() {
            Some(Item::Ring { len, done: before @ None }) => {
                *len += added;
                *before = done;
            }
            _ => self.items.push_back(Item::Ring { len: added, done }),
        }
    }

    /// Collects slices from the front of the queue.
    fn gather<'a>(&'a self, batch: &mut Batch<'a>, regions: &'a Regions) {
        let mut skip = self.written;
        let mut staged = 0;
        for item in &self.items {
            let wanted = batch.len + item.len() - skip;
            match item {
                Item::Ring { len, .. } => {
                    batch.push_ring(&self.ring, staged, len - skip);
                    staged += len - skip;
                }
                Item::Put(put) => put.gather(skip, batch, regions),
            }
            if batch.len < wanted {
                break;
            }
            skip = 0;
        }
    }

    /// Accounts for bytes that have left.
    fn advance(&mut self, mut len: usize, done: &mut Vec<Token>) {
        while let Some(item) = self.items.front() {
            let size = item.len();
            let step = len.min(size - self.written);
            if let Item::Ring { .. } = item {
                self.ring.drain(..step);
            }
            len -= step;
            self.written += step;
            if self.written < size {
                break;
            }
            self.written = 0;
            match self.items.pop_front() {
                Some(Item::Ring { done: token, .. }) => {
                    self.puts -= usize::from(token.is_some());
                    done.extend(token);
                }
                Some(Item::Put(put)) => {
                    self.puts -= 1;
                    done.extend(put.token);
                }
                None => {}
            }
        }
    }
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Self::Ring { len, .. } => *len,
            Self::Put(put) => HEADER + put.len + put.trailer.map_or(0, |trailer| trailer.len()),
        }
    }
}

impl LargePut {
    /// The slices of this put after its first `skip` bytes, as far as there is room.
    fn gather<'a>(&'a self, skip: usize, batch: &mut Batch<'a>, regions: &'a Regions) {
        batch.push(&self.header[skip.min(HEADER)..]);
        let sent = skip.saturating_sub(HEADER).min(self.len);
        let len = (self.len - sent).min(batch.room);
        match self.source.and_then(|source| regions.bytes(source, self.offset + sent, len).ok()) {
            Some(bytes) => batch.push(bytes),
            None => batch.push(&FILLING[..len.min(FILLING.len())]),
        }
        if let (Some(trailer), true) = (&self.trailer, sent + len == self.len) {
            batch.push(&trailer[skip.saturating_sub(HEADER + self.len)..]);
        }
    }
}

/// Slices for one system call.
struct Batch<'a> {
    slices: [IoSlice<'a>; SLICES],
    count: usize,
    len: usize,
    room: usize,
}

impl<'a> Batch<'a> {
    fn new(room: usize) -> Self {
        Self { slices: [IoSlice::new(&[]); SLICES], count: 0, len: 0, room }
    }

    /// Adds as much of `bytes` as there is room for.
    fn push(&mut self, bytes: &'a [u8]) {
        let bytes = &bytes[..bytes.len().min(self.room)];
        if bytes.is_empty() {
            return;
        }
        let Some(slice) = self.slices.get_mut(self.count) else {
            self.room = 0;
            return;
        };
        *slice = IoSlice::new(bytes);
        self.count += 1;
        self.len += bytes.len();
        self.room -= bytes.len();
    }

    fn push_ring(&mut self, ring: &'a VecDeque<u8>, start: usize, len: usize) {
        let (first, second) = ring.as_slices();
        let cut =
            |slice: &'a [u8], start: usize, end: usize| &slice[start.min(slice.len())..end.min(slice.len())];
        self.push(cut(first, start, start + len));
        let (start, end) = (start.saturating_sub(first.len()), (start + len).saturating_sub(first.len()));
        self.push(cut(second, start, end));
    }
}
