//! Folding raw memory, block by block: the one loop that all kernels are made of.
//!
//! A block is a fixed number of elements, loaded from each source in turn, combined in registers and stored to each
//! destination. The compiler unrolls and vectorises it for whatever instruction set the surrounding function enables.
//! Loading a whole block before storing it is what makes a destination that is also a source harmless.

use super::arch::{self, Arch, Task};
use super::rule::{Accumulator, Rule, finish_block, lift_block, merge_block};
use std::hint::black_box;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type without padding of which every bit pattern is a value, so that it may be read from and written to raw memory.
pub(crate) trait Plain: FromBytes + IntoBytes + Immutable + Copy + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + 'static> Plain for T {}

/// Folds `count` elements of the sources from left to right and writes the results to every destination.
///
/// # Safety
///
/// As [`Kernel::fold`](super::Kernel::fold), the element being `T`.
#[inline]
pub(super) unsafe fn fold<T: Plain, R: Rule<T>>(
    rule: R,
    sources: &[*const u8],
    destinations: &[*mut u8],
    count: usize,
) {
    // SAFETY: the caller keeps the contract.
    arch::run(unsafe { Fold::<T, R>::new(rule, sources, destinations, count) });
}

/// The arguments of [`fold`].
pub(super) struct Fold<'a, T, R> {
    rule: R,
    sources: &'a [*const u8],
    destinations: &'a [*mut u8],
    count: usize,
    element: PhantomData<T>,
}

impl<'a, T: Plain, R: Rule<T>> Fold<'a, T, R> {
    /// # Safety
    ///
    /// As [`fold`], until it is dropped.
    #[inline(always)]
    pub(super) unsafe fn new(
        rule: R,
        sources: &'a [*const u8],
        destinations: &'a [*mut u8],
        count: usize,
    ) -> Self {
        Self { rule, sources, destinations, count, element: PhantomData }
    }
}

impl<T: Plain, R: Rule<T>> Task for Fold<'_, T, R> {
    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let mut index = 0;
        if R::VECTORISES {
            // The accumulators of sums fill eight registers of AVX2.
            index = match size_of::<Accumulator<T, R>>() {
                8.. => self.fold_blocks::<A, 32>(arch, index),
                _ => self.fold_blocks::<A, 64>(arch, index),
            };
            index = self.fold_blocks::<A, 8>(arch, index);
        }
        self.fold_blocks::<A, 1>(arch, index);
    }
}

impl<T: Plain, R: Rule<T>> Fold<'_, T, R> {
    /// Folds blocks of `N` elements, from element `index` on, while there are enough. Returns where it stopped.
    #[inline(always)]
    fn fold_blocks<A: Arch, const N: usize>(&self, arch: A, mut index: usize) -> usize {
        while self.count - index >= N {
            // SAFETY: the block ends at `index + N <= count`.
            unsafe { self.fold_block::<A, N>(arch, index) }
            index += N;
        }
        index
    }

    /// Folds the `N` elements that start at element `index`.
    ///
    /// # Safety
    ///
    /// `index + N` is at most the count.
    #[inline(always)]
    unsafe fn fold_block<A: Arch, const N: usize>(&self, arch: A, index: usize) {
        let Some((first, others)) = self.sources.split_first() else { return };
        // SAFETY: the sources are valid for reads of `count >= index + N` elements, as promised to `new`.
        let mut accumulators = unsafe { self.lift_source::<A, N>(arch, *first, index) };
        if let Some((second, others)) = others.split_first() {
            // SAFETY: as above.
            let contributions = unsafe { self.lift_source::<A, N>(arch, *second, index) };
            merge_block::<T, R, N>(self.rule, &mut accumulators, &contributions);
            for source in others {
                // Opaque pointers keep the compiler from vectorising across the sources, with gathers.
                let source = black_box(*source);
                // SAFETY: as above.
                let contributions = unsafe { self.lift_source::<A, N>(arch, source, index) };
                merge_block::<T, R, N>(self.rule, &mut accumulators, &contributions);
            }
        }
        let results = finish_block(arch, self.rule, &accumulators);
        for destination in self.destinations {
            // SAFETY: the destinations are valid for writes of as many, as promised to `new`.
            unsafe { store(*destination, index, results) }
        }
    }

    /// Loads `N` elements of a source, starting at element `index`, as accumulators.
    ///
    /// # Safety
    ///
    /// As [`load`].
    #[inline(always)]
    unsafe fn lift_source<A: Arch, const N: usize>(
        &self,
        arch: A,
        source: *const u8,
        index: usize,
    ) -> [Accumulator<T, R>; N] {
        // SAFETY: the caller vouches for the memory.
        let elements = unsafe { load(source, index) };
        lift_block(arch, self.rule, &elements)
    }
}

/// Reads `N` elements from element `index` of `source` on, at any alignment.
///
/// # Safety
///
/// `source` is valid for reads of `index + N` elements. Other processes may write them meanwhile: what is read is then
/// unspecified, but a value, for every bit pattern is one.
#[inline(always)]
unsafe fn load<T: Plain, const N: usize>(source: *const u8, index: usize) -> [T; N] {
    let block = source.wrapping_add(index * size_of::<T>()).cast::<[T; N]>();
    // SAFETY: the caller vouches for the memory; every bit pattern is a value of a `Plain` type.
    unsafe { block.read_unaligned() }
}

/// Writes `N` elements from element `index` of `destination` on, at any alignment.
///
/// # Safety
///
/// `destination` is valid for writes of `index + N` elements.
#[inline(always)]
unsafe fn store<T: Plain, const N: usize>(destination: *mut u8, index: usize, elements: [T; N]) {
    let block = destination.wrapping_add(index * size_of::<T>()).cast::<[T; N]>();
    // SAFETY: the caller vouches for the memory.
    unsafe { block.write_unaligned(elements) }
}
