//! The board: a region of each rank that all others map. Its owner writes the words, everybody reads them.
//!
//! Words are atomic; slots are plain memory, written by their owner (or, where a call says so, by others) and read by
//! others only between the counters that say so. `README.md` beside this file has the whole argument.

use crate::Rank;
use crate::buffer::Span;
use gradwire_schema::CallSignature;
use gradwire_transport::Direct;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words between two lines: two cache lines, for processors fetch them in pairs.
const STRIDE: usize = 16;
/// By parity of the sequence number: sequence, hash, payload. What does not need the second cache line does not touch it.
const LINES: usize = 0;
/// By parity: the whole signature, read only to name a mismatch.
const DETAILS: usize = 2 * STRIDE;
/// How many rounds this rank has staged.
const STAGED: usize = 4 * STRIDE;
/// How many rounds of the others this rank needs no more.
const CONSUMED: usize = 5 * STRIDE;
/// Not 0: this rank sleeps, or is about to.
const PARKED: usize = 6 * STRIDE;
const WORDS: usize = 7 * STRIDE;

/// Bytes before the slots: a page, so that slots begin at one.
const HEADER: usize = 4096;
const _: () = assert!(WORDS * size_of::<u64>() <= HEADER);

/// Rounds that may be under way: staged, and not yet consumed by everyone.
pub(super) const SLOTS: u64 = 4;
/// Bytes of a slot.
pub(super) const SLOT: usize = 128 << 10;

/// Bytes of a board.
pub(crate) const BOARD_LEN: usize = HEADER + SLOTS as usize * SLOT;

/// Words that a line carries beside sequence and hash.
const CARRIED: usize = STRIDE - 2;
/// Bytes of the longest payload.
pub(super) const INLINE: usize = CARRIED * size_of::<u64>();

/// What a line carries: its first words, as many as are used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Payload {
    words: [u64; CARRIED],
    used: usize,
}

impl Payload {
    /// At most [`INLINE`] bytes.
    pub(super) fn of_words(words: &[u64]) -> Self {
        let mut payload = Self { used: words.len(), ..Self::default() };
        payload.words[..words.len()].copy_from_slice(words);
        payload
    }

    /// At most [`INLINE`] bytes.
    #[inline]
    pub(super) fn of_bytes(span: Span) -> Self {
        let mut payload = Self { used: span.len().div_ceil(size_of::<u64>()), ..Self::default() };
        payload.span().copy_from(span);
        payload
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }

    /// The words as memory.
    #[inline]
    pub(super) fn span(&mut self) -> Span {
        // SAFETY: callers use the span before they use the payload again, and both within one call.
        unsafe { Span::of_slice(&mut self.words[..self.used]) }
    }
}

/// A counter that ranks wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counter {
    /// The number of the last line.
    Line,
    Staged,
    Consumed,
}

/// One rank's board.
#[derive(Clone, Copy, Debug)]
pub(super) struct Board {
    address: NonNull<u8>,
}

// SAFETY: a board is memory of the process, mapped as long as its group lives; words are reached through atomics only,
// slots through spans, whose use the counters order.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

impl Board {
    /// # Safety
    ///
    /// The mapping stays valid while the board is used. It is zeroed before the first board of any rank is made of
    /// it, begins at a page boundary, and is used through boards only.
    pub(super) unsafe fn new(mapped: Direct) -> Option<Self> {
        (mapped.len >= BOARD_LEN).then_some(Self { address: mapped.address })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: by the contract of `new` the mapping holds at least that many initialised words, page-aligned,
        // while the board is used; they are touched as atomics only.
        unsafe { std::slice::from_raw_parts(self.address.cast().as_ptr(), WORDS) }
    }

    /// The slot of a round.
    pub(super) fn slot(&self, round: u64) -> Span {
        let offset = HEADER + (round % SLOTS) as usize * SLOT;
        // SAFETY: the offset and the slot behind it lie inside the board.
        let address = unsafe { self.address.add(offset) };
        // SAFETY: the mapping is valid for longer than any call on the group; there never is a reference to a slot.
        unsafe { Span::new(address, SLOT) }
    }

    /// Publishes a line, and with it everything written before.
    #[inline]
    pub(super) fn publish_line(&self, sequence: u64, hash: u64, payload: &Payload) {
        let line = &self.words()[LINES + (sequence % 2) as usize * STRIDE..][..STRIDE];
        line[1].store(hash, Ordering::Relaxed);
        for (word, value) in line[2..].iter().zip(payload.words()) {
            word.store(*value, Ordering::Relaxed);
        }
        // Releases the line, its detail, and what was staged before. Acquired by `has_reached`.
        line[0].store(sequence, Ordering::Release);
    }

    /// Writes the whole signature of a call whose line is not published yet.
    pub(super) fn set_detail(&self, sequence: u64, detail: &[u8; CallSignature::LEN]) {
        let first = DETAILS + (sequence % 2) as usize * STRIDE;
        for (word, bytes) in self.words()[first..].iter().zip(detail.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// Takes a line back: the number before it with the same parity stands there again.
    pub(super) fn retract_line(&self, sequence: u64) {
        let line = &self.words()[LINES + (sequence % 2) as usize * STRIDE];
        line.store(sequence.saturating_sub(2), Ordering::Release);
    }

    /// The hash on the line of a call. Its sequence has been acquired.
    #[inline]
    pub(super) fn hash(&self, sequence: u64) -> u64 {
        self.words()[LINES + (sequence % 2) as usize * STRIDE + 1].load(Ordering::Relaxed)
    }

    /// The first `len` bytes of the payload on the line of a call. Its sequence has been acquired.
    #[inline]
    pub(super) fn payload(&self, sequence: u64, len: usize) -> Payload {
        let mut payload = Payload::default();
        self.read_payload(sequence, len, &mut payload);
        payload
    }

    /// As [`payload`](Self::payload), into a place that exists.
    #[inline]
    pub(super) fn read_payload(&self, sequence: u64, len: usize, payload: &mut Payload) {
        payload.used = len.div_ceil(size_of::<u64>()).min(CARRIED);
        let first = LINES + (sequence % 2) as usize * STRIDE + 2;
        let line = &self.words()[first..first + CARRIED];
        let words = payload.words[..payload.used].iter_mut();
        words.zip(line).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
    }

    /// The signature of a call. Its sequence has been acquired.
    pub(super) fn detail(&self, sequence: u64) -> [u8; CallSignature::LEN] {
        let first = DETAILS + (sequence % 2) as usize * STRIDE;
        let mut detail = [0; CallSignature::LEN];
        for (bytes, word) in detail.as_chunks_mut().0.iter_mut().zip(&self.words()[first..]) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        detail
    }

    /// Raises a counter of our own, and publishes what was written before.
    pub(super) fn raise(&self, counter: Counter, value: u64) {
        let word = match counter {
            Counter::Line => return,
            Counter::Staged => STAGED,
            Counter::Consumed => CONSUMED,
        };
        // Releases what was staged, or our loads and stores in others' slots. Acquired by `counter`.
        self.words()[word].store(value, Ordering::Release);
    }

    /// Whether a counter has reached `value`. If so, everything its rank wrote before is visible.
    #[inline]
    pub(super) fn has_reached(&self, counter: Counter, value: u64) -> bool {
        let word = match counter {
            Counter::Line => LINES + (value % 2) as usize * STRIDE,
            Counter::Staged => STAGED,
            Counter::Consumed => CONSUMED,
        };
        // Acquires what the rank released with the counter, in `publish_line` or `raise`.
        self.words()[word].load(Ordering::Acquire) >= value
    }

    /// How far the rank has come: for telling who holds the others up.
    pub(super) fn advance(&self) -> (u64, u64) {
        let load = |word: usize| self.words()[word].load(Ordering::Relaxed);
        (load(LINES).max(load(LINES + STRIDE)), load(STAGED) + load(CONSUMED))
    }

    pub(super) fn set_parked(&self, parked: bool) {
        self.words()[PARKED].store(parked.into(), Ordering::Relaxed);
    }

    pub(super) fn is_parked(&self) -> bool {
        self.words()[PARKED].load(Ordering::Relaxed) != 0
    }
}

/// The boards of all ranks, by rank.
#[derive(Debug)]
pub(super) struct Boards {
    rank: Rank,
    boards: Box<[Board]>,
}

impl Boards {
    pub(super) fn new(rank: Rank, boards: Box<[Board]>) -> Option<Self> {
        (rank < boards.len()).then_some(Self { rank, boards })
    }

    pub(super) fn rank(&self) -> Rank {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.boards.len()
    }

    pub(super) fn own(&self) -> &Board {
        &self.boards[self.rank]
    }

    pub(super) fn all(&self) -> &[Board] {
        &self.boards
    }

    /// Those of all ranks but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = (Rank, &Board)> {
        self.boards.iter().enumerate().filter(|(rank, _)| *rank != self.rank)
    }

    /// The slot of a round on the board of `rank`.
    pub(super) fn slot(&self, rank: Rank, round: u64) -> Span {
        self.boards[rank].slot(round)
    }

    /// The ranks that sleep and may wait for something that we have published.
    pub(super) fn parked(&self) -> impl Iterator<Item = Rank> {
        // Pairs with the fence in `Condition::park`: either we see the flag, or the sleeper what we published.
        fence(Ordering::SeqCst);
        self.others().filter(|(_, board)| board.is_parked()).map(|(rank, _)| rank)
    }
}
