//! Folding raw memory, block by block: the one loop that all kernels are made of.
//!
//! A block is a fixed number of elements, loaded from each source in turn, combined in registers and stored to each
//! destination. The compiler unrolls and vectorises it for whatever instruction set the surrounding function enables.
//! Loading a whole block before storing it is what makes a destination that is also a source harmless.

use super::rule::Rule;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type without padding of which every bit pattern is a value, so that it may be read from and written to raw memory.
pub(crate) trait Plain: FromBytes + IntoBytes + Immutable + Copy + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + 'static> Plain for T {}

/// Folds `count` elements of the sources from left to right and writes the results to every destination.
///
/// # Safety
///
/// As [`Kernel::fold`](super::Kernel::fold), the element being `T`.
pub(super) unsafe fn fold<T: Plain, R: Rule<T>>(
    rule: R,
    sources: &[*const u8],
    destinations: &[*mut u8],
    count: usize,
) {
    // SAFETY: the caller keeps the contract.
    unsafe { fold_blocks(rule, sources, destinations, count) }
}

/// [`fold`] for the instruction set of the function that it is inlined into.
///
/// # Safety
///
/// As [`fold`].
#[inline(always)]
unsafe fn fold_blocks<T: Plain, R: Rule<T>>(
    rule: R,
    sources: &[*const u8],
    destinations: &[*mut u8],
    count: usize,
) {
    const BLOCK: usize = 32;
    let whole = count - count % BLOCK;
    for index in (0..whole).step_by(BLOCK) {
        // SAFETY: the block ends at `index + BLOCK <= count`; the rest is the caller's contract.
        unsafe { fold_block::<T, R, BLOCK>(rule, sources, destinations, index) }
    }
    for index in whole..count {
        // SAFETY: the block of one element ends at `index + 1 <= count`; the rest is the caller's contract.
        unsafe { fold_block::<T, R, 1>(rule, sources, destinations, index) }
    }
}

/// Folds the `N` elements that start at element `index`.
///
/// # Safety
///
/// As [`fold`], with a count of at least `index + N`.
#[inline(always)]
unsafe fn fold_block<T: Plain, R: Rule<T>, const N: usize>(
    rule: R,
    sources: &[*const u8],
    destinations: &[*mut u8],
    index: usize,
) {
    let Some((first, others)) = sources.split_first() else { return };
    let offset = index * size_of::<T>();
    // SAFETY: the caller's sources are valid for reads up to the block's end.
    let elements: [T; N] = unsafe { load(*first, offset) };
    let mut accumulators = elements.map(|element| rule.lift(element));
    for source in others {
        // SAFETY: as above.
        let elements: [T; N] = unsafe { load(*source, offset) };
        for (accumulator, element) in accumulators.iter_mut().zip(elements) {
            *accumulator = rule.merge(*accumulator, rule.lift(element));
        }
    }
    let results = accumulators.map(|accumulator| rule.finish(accumulator));
    for destination in destinations {
        // SAFETY: the caller's destinations are valid for writes up to the block's end.
        unsafe { store(*destination, offset, results) }
    }
}

/// Reads `N` elements at `offset` bytes from `base`, at any alignment.
///
/// # Safety
///
/// `base` is valid for reads of the elements at `offset`. Other processes may write them meanwhile: the elements read
/// are then unspecified, but they are values, for every bit pattern is one.
#[inline(always)]
unsafe fn load<T: Plain, const N: usize>(base: *const u8, offset: usize) -> [T; N] {
    let block = base.wrapping_add(offset).cast::<[T; N]>();
    // SAFETY: the caller vouches for the memory; every bit pattern is a value of a `Plain` type.
    unsafe { block.read_unaligned() }
}

/// Writes `N` elements at `offset` bytes from `base`, at any alignment.
///
/// # Safety
///
/// `base` is valid for writes of the elements at `offset`.
#[inline(always)]
unsafe fn store<T: Plain, const N: usize>(base: *mut u8, offset: usize, elements: [T; N]) {
    let block = base.wrapping_add(offset).cast::<[T; N]>();
    // SAFETY: the caller vouches for the memory.
    unsafe { block.write_unaligned(elements) }
}
