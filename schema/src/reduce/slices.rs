//! The operations and conversions on slices in private memory. Slices of one call have the same length; what one has
//! more is left alone.

#![forbid(unsafe_code)]

use super::arch::{self, Arch, Task};
use super::rule::{Accumulator, Rule, finish_block, lift_block, merge_block};
use std::marker::PhantomData;

/// The first contribution.
pub(crate) fn lift<T: Copy, R: Rule<T>>(rule: R, source: &[T], accumulators: &mut [Accumulator<T, R>]) {
    run(accumulators, source, Lift(rule));
}

/// One more contribution, from the right.
pub(crate) fn combine<T: Copy, R: Rule<T>>(rule: R, accumulators: &mut [Accumulator<T, R>], source: &[T]) {
    run(accumulators, source, Combine(rule));
}

/// A partial result, from the right.
pub(crate) fn merge<T: Copy, R: Rule<T>>(
    rule: R,
    accumulators: &mut [Accumulator<T, R>],
    other: &[Accumulator<T, R>],
) {
    run(accumulators, other, Merge(rule, PhantomData));
}

/// The result.
pub(crate) fn finish<T: Copy, R: Rule<T>>(
    rule: R,
    accumulators: &[Accumulator<T, R>],
    destination: &mut [T],
) {
    run(destination, accumulators, Finish(rule));
}

/// Applies `kernel` to each pair of blocks, with the best instructions there are.
pub(crate) fn run<D, S>(destination: &mut [D], source: &[S], kernel: impl Pairwise<D, S>) {
    arch::run(Pairs { destination, source, kernel });
}

/// What to do with a block of a destination and the block of the source beside it.
pub(crate) trait Pairwise<D, S>: Copy {
    /// To be marked `#[inline(always)]`, see [`Task::run`].
    fn block<A: Arch, const N: usize>(self, arch: A, destination: &mut [D; N], source: &[S; N]);
}

struct Pairs<'a, D, S, K> {
    destination: &'a mut [D],
    source: &'a [S],
    kernel: K,
}

impl<D, S, K: Pairwise<D, S>> Task for Pairs<'_, D, S, K> {
    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        let Self { destination, source, kernel } = self;
        let count = destination.len().min(source.len());
        let (destination, source) = (&mut destination[..count], &source[..count]);
        let (destination_blocks, destination_rest) = destination.as_chunks_mut::<32>();
        let (source_blocks, source_rest) = source.as_chunks::<32>();
        for (destination, source) in destination_blocks.iter_mut().zip(source_blocks) {
            kernel.block(arch, destination, source);
        }
        let (destination_rest, _) = destination_rest.as_chunks_mut::<1>();
        let (source_rest, _) = source_rest.as_chunks::<1>();
        for (destination, source) in destination_rest.iter_mut().zip(source_rest) {
            kernel.block(arch, destination, source);
        }
    }
}

#[derive(Clone, Copy)]
struct Lift<R>(R);

#[derive(Clone, Copy)]
struct Combine<R>(R);

#[derive(Clone, Copy)]
struct Merge<T, R>(R, PhantomData<T>);

#[derive(Clone, Copy)]
struct Finish<R>(R);

impl<T: Copy, R: Rule<T>> Pairwise<Accumulator<T, R>, T> for Lift<R> {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(
        self,
        arch: A,
        accumulators: &mut [Accumulator<T, R>; N],
        source: &[T; N],
    ) {
        *accumulators = lift_block(arch, self.0, source);
    }
}

impl<T: Copy, R: Rule<T>> Pairwise<Accumulator<T, R>, T> for Combine<R> {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(
        self,
        arch: A,
        accumulators: &mut [Accumulator<T, R>; N],
        source: &[T; N],
    ) {
        merge_block::<T, R, N>(self.0, accumulators, &lift_block(arch, self.0, source));
    }
}

impl<T: Copy, R: Rule<T>> Pairwise<Accumulator<T, R>, Accumulator<T, R>> for Merge<T, R> {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(
        self,
        _arch: A,
        accumulators: &mut [Accumulator<T, R>; N],
        other: &[Accumulator<T, R>; N],
    ) {
        merge_block::<T, R, N>(self.0, accumulators, other);
    }
}

impl<T: Copy, R: Rule<T>> Pairwise<T, Accumulator<T, R>> for Finish<R> {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(
        self,
        arch: A,
        destination: &mut [T; N],
        accumulators: &[Accumulator<T, R>; N],
    ) {
        *destination = finish_block(arch, self.0, accumulators);
    }
}
