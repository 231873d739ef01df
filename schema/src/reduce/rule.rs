//! What each built-in operation does with one element.

#![forbid(unsafe_code)]

use super::arch::{Arch, each};
use super::bins::PartialSum;
use super::number::{Accumulate, Number, Real};
use crate::operation::{
    BitwiseAnd, BitwiseOr, BitwiseXor, Located, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc,
    Product, ReproducibleAverage, ReproducibleSum, Sum, WideSum,
};
use crate::{Element, Float, Integer};
use std::convert::identity;
use std::num::NonZeroU64;
use std::ops::{BitAnd, BitOr, BitXor};

/// The element-wise definition of an operation, from which its slice functions and its kernels are generated.
///
/// An element is loaded in the rule's format, prepared, merged with others, concluded, and stored.
pub(crate) trait Rule<T>: Copy {
    /// How elements are loaded and stored.
    type Format: Format<T>;
    /// Whether the rule has no branches, so that blocks of it vectorise.
    const VECTORISES: bool = true;

    /// What a contribution goes through before it is merged.
    #[inline(always)]
    fn prepare(self, contribution: Accumulator<T, Self>) -> Accumulator<T, Self> {
        contribution
    }

    /// Merges two partial results, the right one's contributions after the left one's.
    fn merge(self, left: Accumulator<T, Self>, right: Accumulator<T, Self>) -> Accumulator<T, Self>;

    /// What a result goes through before it is stored.
    #[inline(always)]
    fn conclude(self, result: Accumulator<T, Self>) -> Accumulator<T, Self> {
        result
    }
}

/// What the partial results of a rule are.
pub(crate) type Accumulator<T, R> = <<R as Rule<T>>::Format as Format<T>>::Accumulator;

/// The accumulators of a block of contributions.
#[inline(always)]
pub(crate) fn lift_block<T, R: Rule<T>, A: Arch, const N: usize>(
    arch: A,
    rule: R,
    elements: &[T; N],
) -> [Accumulator<T, R>; N] {
    each(&R::Format::load(arch, elements), |contribution| rule.prepare(contribution))
}

/// Merges a block of partial results into another, from the right.
#[inline(always)]
pub(crate) fn merge_block<T, R: Rule<T>, const N: usize>(
    rule: R,
    left: &mut [Accumulator<T, R>; N],
    right: &[Accumulator<T, R>; N],
) {
    for (left, right) in left.iter_mut().zip(right) {
        *left = rule.merge(*left, *right);
    }
}

/// The elements of a block of results.
#[inline(always)]
pub(crate) fn finish_block<T, R: Rule<T>, A: Arch, const N: usize>(
    arch: A,
    rule: R,
    accumulators: &[Accumulator<T, R>; N],
) -> [T; N] {
    R::Format::store(arch, &each(accumulators, |result| rule.conclude(result)))
}

/// How the elements of a block are loaded into accumulators and stored from them.
pub(crate) trait Format<T> {
    type Accumulator: Copy + Default;

    fn load<A: Arch, const N: usize>(arch: A, elements: &[T; N]) -> [Self::Accumulator; N];
    fn store<A: Arch, const N: usize>(arch: A, accumulators: &[Self::Accumulator; N]) -> [T; N];
}

/// Accumulators are elements.
pub(crate) struct Same;

/// Accumulators are wide enough for sums.
pub(crate) struct Wide;

impl<T: Copy + Default> Format<T> for Same {
    type Accumulator = T;

    #[inline(always)]
    fn load<A: Arch, const N: usize>(_arch: A, elements: &[T; N]) -> [T; N] {
        *elements
    }

    #[inline(always)]
    fn store<A: Arch, const N: usize>(_arch: A, accumulators: &[T; N]) -> [T; N] {
        *accumulators
    }
}

impl<T: Element> Format<T> for Wide {
    type Accumulator = T::Wide;

    #[inline(always)]
    fn load<A: Arch, const N: usize>(arch: A, elements: &[T; N]) -> [T::Wide; N] {
        T::widen_block(arch, elements)
    }

    #[inline(always)]
    fn store<A: Arch, const N: usize>(arch: A, accumulators: &[T::Wide; N]) -> [T; N] {
        T::narrow_block(arch, accumulators)
    }
}

/// Accumulators are f64.
pub(crate) struct Double;

impl<T: Float> Format<T> for Double {
    type Accumulator = f64;

    #[inline(always)]
    fn load<A: Arch, const N: usize>(arch: A, elements: &[T; N]) -> [f64; N] {
        T::widen_to_f64(arch, elements)
    }

    #[inline(always)]
    fn store<A: Arch, const N: usize>(arch: A, accumulators: &[f64; N]) -> [T; N] {
        T::narrow_from_f64(arch, accumulators)
    }
}

/// Accumulators are bins; a result is what they hold.
pub(crate) struct Binned;

/// Accumulators are bins; a result is their average.
pub(crate) struct BinnedMean;

/// Bins, and what is made of them in the end.
macro_rules! binned {
    ($($format:ident => $finish:expr;)*) => {$(
        impl<T: Float> Format<T> for $format {
            type Accumulator = PartialSum;

            #[inline(always)]
            fn load<A: Arch, const N: usize>(arch: A, elements: &[T; N]) -> [PartialSum; N] {
                each(&T::widen_to_f64(arch, elements), PartialSum::of)
            }

            #[inline(always)]
            fn store<A: Arch, const N: usize>(arch: A, accumulators: &[PartialSum; N]) -> [T; N] {
                T::narrow_from_f64(arch, &each(accumulators, |sum| $finish(&sum)))
            }
        }
    )*};
}

binned! {
    // Rounded once: what is rounded to odd may be rounded again to a narrower format.
    Binned => |sum: &PartialSum| if size_of::<T>() == size_of::<f64>() { sum.nearest() } else { sum.odd() };
    BinnedMean => PartialSum::average;
}

/// The sum of `Average`, divided at the end.
#[derive(Clone, Copy)]
pub(crate) struct Mean {
    pub(crate) contributions: u64,
}

/// The sum of `WideAverage`, divided at the end.
#[derive(Clone, Copy)]
pub(crate) struct WideMean {
    pub(crate) contributions: u64,
}

impl From<NonZeroU64> for Mean {
    fn from(contributions: NonZeroU64) -> Self {
        Self { contributions: contributions.get() }
    }
}

impl From<NonZeroU64> for WideMean {
    fn from(contributions: NonZeroU64) -> Self {
        Self { contributions: contributions.get() }
    }
}

/// The sum of `PreMultipliedSum`.
#[derive(Clone, Copy)]
pub(crate) struct Scaled {
    pub(crate) factor: f64,
}

/// Rules of a merge alone, and of what is before and after it.
macro_rules! rules {
    ($bound:ident, $format:ident, $prepare:path, $conclude:path: $($rule:ty => $merge:path;)*) => {$(
        impl<T: $bound> Rule<T> for $rule {
            type Format = $format;

            #[inline(always)]
            fn prepare(self, contribution: Accumulator<T, Self>) -> Accumulator<T, Self> {
                $prepare(contribution)
            }

            #[inline(always)]
            fn merge(self, left: Accumulator<T, Self>, right: Accumulator<T, Self>) -> Accumulator<T, Self> {
                $merge(left, right)
            }

            #[inline(always)]
            fn conclude(self, result: Accumulator<T, Self>) -> Accumulator<T, Self> {
                $conclude(result)
            }
        }
    )*};
}

rules! { Element, Wide, identity, identity:
    Sum => Accumulate::add;
    Product => Accumulate::multiply;
}

rules! { Element, Same, identity, Number::canonical:
    Min => Number::smaller;
    Max => Number::larger;
}

rules! { Float, Double, identity, identity:
    WideSum => Accumulate::add;
}

rules! { Integer, Same, identity, identity:
    BitwiseAnd => BitAnd::bitand;
    BitwiseOr => BitOr::bitor;
    BitwiseXor => BitXor::bitxor;
}

rules! { Integer, Same, truth, identity:
    LogicalAnd => BitAnd::bitand;
    LogicalOr => BitOr::bitor;
    LogicalXor => BitXor::bitxor;
}

/// 1 for everything but 0.
#[inline(always)]
fn truth<T: Integer>(value: T) -> T {
    T::from(value != T::default())
}

impl<T: Float> Rule<T> for Mean {
    type Format = Wide;

    #[inline(always)]
    fn merge(self, left: T::Wide, right: T::Wide) -> T::Wide {
        left.add(right)
    }

    #[inline(always)]
    fn conclude(self, result: T::Wide) -> T::Wide {
        result.divide(T::Wide::from_f64(self.contributions as f64))
    }
}

impl<T: Float> Rule<T> for WideMean {
    type Format = Double;

    #[inline(always)]
    fn merge(self, left: f64, right: f64) -> f64 {
        left + right
    }

    #[inline(always)]
    fn conclude(self, result: f64) -> f64 {
        result / self.contributions as f64
    }
}

impl<T: Float> Rule<T> for Scaled {
    type Format = Wide;

    #[inline(always)]
    fn prepare(self, contribution: T::Wide) -> T::Wide {
        contribution.multiply(T::Wide::from_f64(self.factor))
    }

    #[inline(always)]
    fn merge(self, left: T::Wide, right: T::Wide) -> T::Wide {
        left.add(right)
    }
}

/// Sums in bins: of numbers, and of such sums.
macro_rules! reproducible {
    ($($rule:ident: $format:ident;)*) => {$(
        impl<T: Float> Rule<T> for $rule {
            type Format = $format;
            const VECTORISES: bool = false;

            #[inline(always)]
            fn merge(self, left: PartialSum, right: PartialSum) -> PartialSum {
                left.merge(right)
            }
        }

        impl Rule<PartialSum> for $rule {
            type Format = Same;
            const VECTORISES: bool = false;

            #[inline(always)]
            fn merge(self, left: PartialSum, right: PartialSum) -> PartialSum {
                left.merge(right)
            }
        }
    )*};
}

reproducible! {
    ReproducibleSum: Binned;
    ReproducibleAverage: BinnedMean;
}

/// Of two values the one that `extreme` chooses; of equal ones that with the lower index.
macro_rules! locate {
    ($($rule:ident => $extreme:ident;)*) => {$(
        impl<V: Element> Rule<Located<V>> for $rule {
            type Format = Same;
            const VECTORISES: bool = false;

            #[inline(always)]
            fn prepare(self, contribution: Located<V>) -> Located<V> {
                Located::new(contribution.value().canonical(), contribution.index())
            }

            #[inline(always)]
            fn merge(self, left: Located<V>, right: Located<V>) -> Located<V> {
                let extreme = Located::new(left.value().$extreme(right.value()).canonical(), left.index());
                match (left.has_same_value(extreme), right.has_same_value(extreme)) {
                    (true, true) if right.index() < left.index() => right,
                    (false, _) => right,
                    _ => left,
                }
            }
        }
    )*};
}

locate! {
    MinLoc => smaller;
    MaxLoc => larger;
}
