//! Memory that threads and processes read and write at the same time: a rank's part of a window.
//!
//! Elements are reached through atomics of their own size only, whoever reaches for them and by whichever mapping. So a
//! race is no undefined behaviour, and no element is ever torn. In front of the elements lies a header of words: what
//! their owner tells origins that map them, and the counters of its notices.

use super::update::{Combine, combine_of};
use gradwire_schema::{Datatype, Element, WindowUpdate};
use gradwire_transport::{Allocation, Direct};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// How many notices a window has at each rank.
pub(crate) const NOTICES: usize = 1024;

/// Not 0: the owner has dropped the window.
const CLOSED: usize = 0;
/// Not 0: the owner sleeps until its bell rings, or is about to. Two cache lines from its neighbours.
const PARKED: usize = 16;
/// How often each notice has been raised since it was taken.
const COUNTERS: usize = 32;
const WORDS: usize = COUNTERS + NOTICES;
const HEADER: usize = WORDS * size_of::<u64>();

/// Elements that an update looks at together.
pub(super) const BLOCK: usize = 64;

/// A rank's part of a window, in memory of this process or mapped from a peer's.
pub(crate) struct Exposed {
    /// Of the header; the elements follow.
    address: NonNull<u8>,
    count: usize,
    datatype: Datatype,
    /// What keeps the memory; a peer's is kept by whoever has mapped it.
    _keep: Keep,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held for their drop")]
enum Keep {
    Words(Box<[AtomicU64]>),
    Allocation(Allocation),
    Mapping,
}

// SAFETY: the memory is owned by the value or kept mapped while it lives, and is reached through atomics only, but for
// `slice_mut`, whose callers promise that nobody else reaches for it.
unsafe impl Send for Exposed {}
// SAFETY: as above.
unsafe impl Sync for Exposed {}

impl Exposed {
    /// Bytes for `count` elements and the header, if there can be so many.
    pub(crate) fn len_of(datatype: Datatype, count: usize) -> Option<usize> {
        count.checked_mul(datatype.size())?.checked_add(HEADER).filter(|len| *len <= isize::MAX as usize)
    }

    /// Zeros in memory that no peer maps; `None` when there is not enough.
    pub(crate) fn private(datatype: Datatype, count: usize) -> Option<Self> {
        let len = Self::len_of(datatype, count)?.div_ceil(size_of::<u64>());
        let mut words: Vec<AtomicU64> = Vec::new();
        words.try_reserve_exact(len).ok()?;
        words.resize_with(len, AtomicU64::default);
        let words = words.into_boxed_slice();
        let address = NonNull::from(&*words).cast();
        Some(Self { address, count, datatype, _keep: Keep::Words(words) })
    }

    /// Zeros in memory that a transport has allocated for this alone; `None` when it is too short.
    pub(crate) fn allocated(datatype: Datatype, count: usize, allocation: Allocation) -> Option<Self> {
        let address = allocation.address();
        let fits = Self::len_of(datatype, count)? <= allocation.len();
        fits.then_some(Self { address, count, datatype, _keep: Keep::Allocation(allocation) })
    }

    /// The part of a peer; `None` when the mapping is too short.
    ///
    /// # Safety
    ///
    /// The mapping begins at a page boundary, stays valid while the value lives, and was allocated by its owner for
    /// [`allocated`](Self::allocated).
    pub(crate) unsafe fn mapped(datatype: Datatype, count: usize, mapping: Direct) -> Option<Self> {
        let fits = Self::len_of(datatype, count)? <= mapping.len;
        fits.then_some(Self { address: mapping.address, count, datatype, _keep: Keep::Mapping })
    }

    /// Bytes of an element.
    pub(crate) fn width(&self) -> usize {
        self.datatype.size()
    }

    /// Reads as many elements as `bytes` holds. `None`, as everywhere here: the range is outside.
    pub(crate) fn load(&self, index: usize, bytes: &mut [u8]) -> Option<()> {
        let range = self.range(index, bytes.len())?;
        match self.width() {
            1 => load(self.cells::<AtomicU8>(range), bytes),
            2 => load(self.cells::<AtomicU16>(range), bytes),
            4 => load(self.cells::<AtomicU32>(range), bytes),
            _ => load(self.cells::<AtomicU64>(range), bytes),
        }
        // What was written before a value that we have read is visible from now on.
        fence(Ordering::Acquire);
        Some(())
    }

    /// Writes as many elements as `bytes` holds.
    pub(crate) fn store(&self, index: usize, bytes: &[u8]) -> Option<()> {
        let range = self.range(index, bytes.len())?;
        // Pairs with the fence in `load`: what we wrote before is visible to whoever reads what follows.
        fence(Ordering::Release);
        match self.width() {
            1 => store(self.cells::<AtomicU8>(range), bytes),
            2 => store(self.cells::<AtomicU16>(range), bytes),
            4 => store(self.cells::<AtomicU32>(range), bytes),
            _ => store(self.cells::<AtomicU64>(range), bytes),
        }
        Some(())
    }

    /// Combines elements with operands; each is replaced at once. What was there before goes to `before`, which is empty
    /// or as long as the operand.
    pub(crate) fn update(
        &self,
        index: usize,
        update: WindowUpdate,
        operand: &[u8],
        before: &mut [u8],
    ) -> Option<()> {
        let combine = combine_of(self.datatype, update)?;
        let range = self.range(index, operand.len())?;
        match self.width() {
            1 => change(self.cells::<AtomicU8>(range), combine, operand, before),
            2 => change(self.cells::<AtomicU16>(range), combine, operand, before),
            4 => change(self.cells::<AtomicU32>(range), combine, operand, before),
            _ => change(self.cells::<AtomicU64>(range), combine, operand, before),
        }
        Some(())
    }

    /// Writes `value` where `comparand` is; what was there before goes to `before`. All are as long as one element.
    pub(crate) fn compare_and_swap(
        &self,
        index: usize,
        comparand: &[u8],
        value: &[u8],
        before: &mut [u8],
    ) -> Option<()> {
        let width = self.width();
        if [comparand.len(), value.len(), before.len()] != [width; 3] {
            return None;
        }
        let range = self.range(index, width)?;
        match width {
            1 => swap(self.cells::<AtomicU8>(range), comparand, value, before),
            2 => swap(self.cells::<AtomicU16>(range), comparand, value, before),
            4 => swap(self.cells::<AtomicU32>(range), comparand, value, before),
            _ => swap(self.cells::<AtomicU64>(range), comparand, value, before),
        }
        Some(())
    }

    /// Raises a notice: whoever takes it sees all that this thread wrote before.
    pub(crate) fn raise(&self, notice: usize) -> Option<()> {
        self.counters().get(notice)?.fetch_add(1, Ordering::Release);
        Some(())
    }

    /// How often a notice has been raised since it was last taken.
    pub(crate) fn take(&self, notice: usize) -> u64 {
        let Some(counter) = self.counters().get(notice) else { return 0 };
        // Only we take: a look is enough while there is nothing.
        if counter.load(Ordering::Relaxed) == 0 { 0 } else { counter.swap(0, Ordering::Acquire) }
    }

    /// Tells origins that map this that the window is dropped.
    pub(crate) fn close(&self) {
        self.words()[CLOSED].store(1, Ordering::Release);
    }

    /// Whether its owner has dropped it. What that raised elsewhere before is visible then.
    pub(crate) fn is_closed(&self) -> bool {
        self.words()[CLOSED].load(Ordering::Acquire) != 0
    }

    /// The owner is about to sleep, or awake again. After `true` it must look once more at what it waits for.
    pub(crate) fn set_parked(&self, parked: bool) {
        self.words()[PARKED].store(parked.into(), Ordering::Relaxed);
        // Pairs with the fence in `is_parked`: either we see what was raised, or whoever raised it our flag.
        fence(Ordering::SeqCst);
    }

    /// Whether the owner must be rung for, to see what was raised.
    pub(crate) fn is_parked(&self) -> bool {
        fence(Ordering::SeqCst);
        self.words()[PARKED].load(Ordering::Relaxed) != 0
    }

    /// The elements as a slice.
    ///
    /// # Safety
    ///
    /// Until the slice is used no more, no other method that reaches elements is called here, and no peer reaches for them;
    /// what was done before happens before this call. `T` is the type of the elements.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that it is the only one")]
    pub(crate) unsafe fn slice_mut<T: Element>(&self) -> &mut [T] {
        debug_assert_eq!(T::DATATYPE, self.datatype);
        // SAFETY: the header lies inside the memory.
        let elements = unsafe { self.address.add(HEADER) };
        // SAFETY: `count` elements follow the header, aligned since the header is a multiple of 64 bytes, initialised (zeroed
        // at first, and any bits are an element); the caller promises that nobody else uses them.
        unsafe { std::slice::from_raw_parts_mut(elements.cast().as_ptr(), self.count) }
    }

    /// Which elements `len` bytes from `index` on are, if they are inside.
    fn range(&self, index: usize, len: usize) -> Option<Range<usize>> {
        let width = self.width();
        let end = index.checked_add(len / width)?;
        (len.is_multiple_of(width) && end <= self.count).then_some(index..end)
    }

    /// Elements as atomics of their size.
    fn cells<C: Cell>(&self, range: Range<usize>) -> &[C] {
        assert!(C::WIDTH == self.width() && range.end <= self.count);
        // SAFETY: `range` made sure that it ends inside the elements, which follow the header.
        let first = unsafe { self.address.add(HEADER + range.start * C::WIDTH) };
        // SAFETY: so many initialised elements are there, aligned (see `slice_mut`), while `self` lives; atomics may be changed
        // behind a shared reference, by any process, and all of them use atomics of this size.
        unsafe { std::slice::from_raw_parts(first.cast().as_ptr(), range.len()) }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the memory begins with the header, at a page boundary or at that of a word; it is initialised, lives as long
        // as `self`, and its words are touched as atomics only.
        unsafe { std::slice::from_raw_parts(self.address.cast().as_ptr(), WORDS) }
    }

    fn counters(&self) -> &[AtomicU64] {
        &self.words()[COUNTERS..]
    }
}

impl fmt::Debug for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exposed({} x {})", self.datatype.name(), self.count)
    }
}

/// An atomic of the size of an element.
trait Cell {
    const WIDTH: usize;

    fn read(&self, bytes: &mut [u8]);
    fn write(&self, bytes: &[u8]);
    fn bits(&self) -> u64;
    /// Replaces `current` by `new`, or tells what is there instead.
    fn exchange(&self, current: u64, new: u64) -> Result<u64, u64>;
}

macro_rules! cell {
    ($($atomic:ty: $word:ty;)*) => {$(
        impl Cell for $atomic {
            const WIDTH: usize = size_of::<$word>();

            #[inline(always)]
            fn read(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.load(Ordering::Relaxed).to_le_bytes());
            }

            #[inline(always)]
            fn write(&self, bytes: &[u8]) {
                if let Ok(bytes) = bytes.try_into() {
                    self.store(<$word>::from_le_bytes(bytes), Ordering::Relaxed);
                }
            }

            #[inline(always)]
            fn bits(&self) -> u64 {
                self.load(Ordering::Relaxed).into()
            }

            #[inline(always)]
            fn exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
                self.compare_exchange(current as $word, new as $word, Ordering::AcqRel, Ordering::Acquire)
                    .map(u64::from)
                    .map_err(u64::from)
            }
        }
    )*};
}

cell! {
    AtomicU8: u8;
    AtomicU16: u16;
    AtomicU32: u32;
    AtomicU64: u64;
}

fn load<C: Cell>(cells: &[C], bytes: &mut [u8]) {
    cells.iter().zip(bytes.chunks_exact_mut(C::WIDTH)).for_each(|(cell, bytes)| cell.read(bytes));
}

fn store<C: Cell>(cells: &[C], bytes: &[u8]) {
    cells.iter().zip(bytes.chunks_exact(C::WIDTH)).for_each(|(cell, bytes)| cell.write(bytes));
}

/// Elements are combined a block at a time, and replaced one by one: whoever else changed one in between is heard.
fn change<C: Cell>(cells: &[C], combine: Combine, operand: &[u8], before: &mut [u8]) {
    let mut before = before.chunks_exact_mut(C::WIDTH);
    for (cells, operand) in cells.chunks(BLOCK).zip(operand.chunks(BLOCK * C::WIDTH)) {
        let (mut old, mut new, mut with) = ([0; BLOCK], [0; BLOCK], [0; BLOCK]);
        let count = cells.len();
        for (index, (cell, operand)) in cells.iter().zip(operand.chunks_exact(C::WIDTH)).enumerate() {
            old[index] = cell.bits();
            with[index] = from_bytes(operand);
        }
        new[..count].copy_from_slice(&old[..count]);
        combine(&mut new[..count], &with[..count]);
        for (index, cell) in cells.iter().enumerate() {
            while let Err(current) = cell.exchange(old[index], new[index]) {
                (old[index], new[index]) = (current, current);
                combine(&mut new[index..=index], &with[index..=index]);
            }
            if let Some(before) = before.next() {
                before.copy_from_slice(&old[index].to_le_bytes()[..C::WIDTH]);
            }
        }
    }
}

fn swap<C: Cell>(cells: &[C], comparand: &[u8], value: &[u8], before: &mut [u8]) {
    for cell in cells {
        let (Ok(was) | Err(was)) = cell.exchange(from_bytes(comparand), from_bytes(value));
        before.copy_from_slice(&was.to_le_bytes()[..C::WIDTH]);
    }
}

/// The bits of an element of up to eight bytes.
fn from_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
