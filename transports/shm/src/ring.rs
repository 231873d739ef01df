//! A ring of messages from one process to another. `README.md` beside this crate's `src` proves the ordering.
//!
//! All memory is atomic words, so that even a hostile peer causes no data race, and each side keeps its own
//! index privately: what the peer writes is read once, checked, and never trusted to stay.

use crate::sync::{AtomicU64, Ordering, fence};
use std::fmt;
use std::num::Wrapping;

/// Memory shared with one peer.
pub(crate) trait Storage {
    fn words(&self) -> &[AtomicU64];
}

/// Words before the data: one index or flag in each group of 128 bytes, the unit in which caches move lines.
pub(crate) const HEADER: usize = 4 * GROUP;
const GROUP: usize = 16;
/// How many words were ever written. Stored by the producer.
const TAIL: usize = 0;
/// How many words were ever read. Stored by the consumer.
const HEAD: usize = GROUP;
/// Not 0: the consumer sleeps, or is about to. Set by the consumer, cleared by whoever rings, or by itself.
const CONSUMER_SLEEPS: usize = 2 * GROUP;
/// Not 0: the producer found no room and wants to be told. Set by the producer, cleared by the consumer.
const PRODUCER_WAITS: usize = 3 * GROUP;

/// What a record is about; `argument` is a tag or a notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label {
    pub(crate) kind: u32,
    pub(crate) argument: u32,
}

/// Words in front of a record's payload: `kind | argument << 32`, then the payload's length in bytes.
const LABEL: usize = 2;

const fn record_words(len: usize) -> usize {
    LABEL + len.div_ceil(size_of::<u64>())
}

/// The peer wrote something that no correct peer writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Violation(pub(crate) &'static str);

/// Whether a record was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pushed {
    /// Yes; `wake` when the consumer sleeps and its bell must be rung.
    Yes { wake: bool },
    /// There is no room; the consumer will ring our bell when there is.
    Full,
}

/// The writing end.
pub(crate) struct Producer<S> {
    storage: S,
    tail: Wrapping<u64>,
    /// The consumer's index as last seen: never ahead of the truth.
    head: Wrapping<u64>,
    waiting: bool,
}

impl<S: Storage> Producer<S> {
    /// `storage` is zeroed; its data is a power of two of words.
    pub(crate) fn new(storage: S) -> Self {
        debug_assert!((storage.words().len() - HEADER).is_power_of_two());
        Self { storage, tail: Wrapping(0), head: Wrapping(0), waiting: false }
    }

    /// Adds a record and publishes it.
    pub(crate) fn push(&mut self, label: Label, payload: &[u8]) -> Result<Pushed, Violation> {
        let needed = record_words(payload.len());
        if !self.has_room(needed)? && !self.wait_for_room(needed)? {
            return Ok(Pushed::Full);
        }
        let words = self.storage.words();
        let ring = Ring::of(words);
        ring.at(self.tail).store(u64::from(label.kind) | u64::from(label.argument) << 32, Ordering::Relaxed);
        ring.at(self.tail + Wrapping(1)).store(payload.len() as u64, Ordering::Relaxed);
        ring.store(self.tail + Wrapping(LABEL as u64), payload);
        self.tail += needed as u64;
        // Releases the record, and all bytes put into the peer's regions before it. Acquired in `Consumer::refresh`.
        words[TAIL].store(self.tail.0, Ordering::Release);
        // Pairs with the fence in `Consumer::fall_asleep`: either it sees the record, or we see that it sleeps.
        fence(Ordering::SeqCst);
        Ok(Pushed::Yes { wake: self.rouses_consumer() })
    }

    /// Whether a record of `len` bytes would fit now. If not, the consumer will ring our bell when it has read.
    pub(crate) fn fits(&mut self, len: usize) -> Result<bool, Violation> {
        let needed = record_words(len);
        Ok(self.has_room(needed)? || self.wait_for_room(needed)?)
    }

    /// Whether a record found no room before, and half of the ring is free now.
    pub(crate) fn has_room_again(&mut self) -> Result<bool, Violation> {
        let half = (self.storage.words().len() - HEADER) / 2;
        Ok(self.waiting && self.wait_for_room(half)?)
    }

    /// Asks the consumer to ring our bell when it has read, unless there is room already.
    fn wait_for_room(&mut self, needed: usize) -> Result<bool, Violation> {
        // Releases that we fell asleep before, perhaps. Acquired in `Consumer::release`, when it takes the flag back.
        self.storage.words()[PRODUCER_WAITS].swap(1, Ordering::AcqRel);
        // Pairs with the fence in `Consumer::release`: either we see the room, or the consumer our flag.
        fence(Ordering::SeqCst);
        self.waiting = !self.has_room(needed)?;
        Ok(!self.waiting)
    }

    fn has_room(&mut self, needed: usize) -> Result<bool, Violation> {
        let words = self.storage.words();
        let room = (words.len() - HEADER) as u64 - needed as u64;
        if (self.tail - self.head).0 > room {
            // Acquires the consumer's reads of the words we are about to overwrite. Released in `Consumer::release`.
            let head = Wrapping(words[HEAD].load(Ordering::Acquire));
            if (self.tail - head).0 > (self.tail - self.head).0 {
                return Err(Violation("it moved its read index backwards or past our writes"));
            }
            self.head = head;
        }
        Ok((self.tail - self.head).0 <= room)
    }

    /// Before sleep: whether there is room again of which `has_room_again` has not told yet. Else the consumer will
    /// ring.
    pub(crate) fn is_waiting_in_vain(&mut self) -> bool {
        let waited = self.waiting;
        let told = self.has_room_again().unwrap_or(true);
        self.waiting = waited;
        told
    }

    /// Whether the consumer sleeps and nobody has rung for it: then that is up to the caller.
    pub(crate) fn rouses_consumer(&self) -> bool {
        let flag = &self.storage.words()[CONSUMER_SLEEPS];
        // Taken in one step, so that a sleeper is rung for once. Acquires nothing: it only decides about the bell.
        flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::AcqRel) != 0
    }
}

/// The reading end.
pub(crate) struct Consumer<S> {
    storage: S,
    head: Wrapping<u64>,
    /// The producer's index as last seen: never ahead of the truth.
    tail: Wrapping<u64>,
    released: Wrapping<u64>,
}

impl<S: Storage> Consumer<S> {
    /// `storage` is zeroed; its data is a power of two of words.
    pub(crate) fn new(storage: S) -> Self {
        debug_assert!((storage.words().len() - HEADER).is_power_of_two());
        Self { storage, head: Wrapping(0), tail: Wrapping(0), released: Wrapping(0) }
    }

    /// Takes the next record, if there is one, and copies its payload to `payload`, which bounds its length.
    pub(crate) fn pop(&mut self, payload: &mut [u8]) -> Result<Option<(Label, usize)>, Violation> {
        if self.head == self.tail && !self.refresh()? {
            return Ok(None);
        }
        let ring = Ring::of(self.storage.words());
        let available = (self.tail - self.head).0;
        if available < LABEL as u64 {
            return Err(Violation("half a record"));
        }
        let first = ring.at(self.head).load(Ordering::Relaxed);
        let len =
            usize::try_from(ring.at(self.head + Wrapping(1)).load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        if len > payload.len() || record_words(len) as u64 > available {
            return Err(Violation("a record longer than it may be"));
        }
        ring.load(self.head + Wrapping(LABEL as u64), &mut payload[..len]);
        self.head += record_words(len) as u64;
        Ok(Some((Label { kind: first as u32, argument: (first >> 32) as u32 }, len)))
    }

    /// Looks for words behind those already seen. Whether there are any.
    fn refresh(&mut self) -> Result<bool, Violation> {
        let words = self.storage.words();
        // Acquires the records. Released in `Producer::push`.
        let tail = Wrapping(words[TAIL].load(Ordering::Acquire));
        if (tail - self.head).0 > (words.len() - HEADER) as u64 {
            return Err(Violation("it moved its write index backwards or too far"));
        }
        self.tail = tail;
        Ok(self.tail != self.head)
    }

    /// Gives the room of the records taken so far back to the producer. Whether the producer waited for it.
    pub(crate) fn release(&mut self) -> bool {
        if self.released == self.head {
            return false;
        }
        self.released = self.head;
        let words = self.storage.words();
        // Releases our reads of the words. Acquired in `Producer::has_room`.
        words[HEAD].store(self.head.0, Ordering::Release);
        // Pairs with the fence in `Producer::push`: either it sees the room, or we see that it waits.
        fence(Ordering::SeqCst);
        // Taken back in one step: a flag that is set again meanwhile is either left standing or rung for. Acquires
        // what the producer did before it set the flag: falling asleep, perhaps.
        words[PRODUCER_WAITS].load(Ordering::Relaxed) != 0
            && words[PRODUCER_WAITS].swap(0, Ordering::AcqRel) != 0
    }

    /// Announces sleep. `false`: a record has arrived meanwhile (or the peer misbehaves, which `pop` will say).
    pub(crate) fn fall_asleep(&mut self) -> bool {
        self.storage.words()[CONSUMER_SLEEPS].store(1, Ordering::Relaxed);
        // Pairs with the fence in `Producer::push`: either we see the record, or the producer that we sleep.
        fence(Ordering::SeqCst);
        self.head == self.tail && matches!(self.refresh(), Ok(false))
    }

    /// Takes `fall_asleep` back. Whether somebody rang meanwhile.
    pub(crate) fn wake_up(&mut self) -> bool {
        self.storage.words()[CONSUMER_SLEEPS].swap(0, Ordering::AcqRel) == 0
    }
}

/// The data words, indexed by ever-growing positions.
#[derive(Clone, Copy)]
struct Ring<'a>(&'a [AtomicU64]);

impl<'a> Ring<'a> {
    fn of(words: &'a [AtomicU64]) -> Self {
        Self(&words[HEADER..])
    }

    fn at(self, position: Wrapping<u64>) -> &'a AtomicU64 {
        &self.0[self.index(position)]
    }

    fn index(self, position: Wrapping<u64>) -> usize {
        position.0 as usize & (self.0.len() - 1)
    }

    /// The words from `position` on, in the order of positions: up to the end, then from the start.
    fn from(self, position: Wrapping<u64>) -> impl Iterator<Item = &'a AtomicU64> {
        let (front, back) = self.0.split_at(self.index(position));
        back.iter().chain(front)
    }

    fn store(self, position: Wrapping<u64>, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks();
        let mut words = self.from(position);
        // The chunks end first: `zip` takes no word for which there is none.
        for (chunk, word) in chunks.iter().zip(&mut words) {
            word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        if let (false, Some(word)) = (rest.is_empty(), words.next()) {
            let mut value = [0; size_of::<u64>()];
            value[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_le_bytes(value), Ordering::Relaxed);
        }
    }

    fn load(self, position: Wrapping<u64>, bytes: &mut [u8]) {
        let (chunks, rest) = bytes.as_chunks_mut();
        let mut words = self.from(position);
        for (chunk, word) in chunks.iter_mut().zip(&mut words) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if let (false, Some(word)) = (rest.is_empty(), words.next()) {
            rest.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..rest.len()]);
        }
    }
}

impl<S> fmt::Debug for Producer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("tail", &self.tail).field("head", &self.head).finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Consumer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("head", &self.head).field("tail", &self.tail).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
