//! What each built-in operation does with one element.

#![forbid(unsafe_code)]

use super::number::{Accumulate, Number, Real};
use crate::operation::{
    BitwiseAnd, BitwiseOr, BitwiseXor, Located, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc,
    Product, Sum,
};
use crate::{Element, Float, Integer};
use std::convert::identity;
use std::ops::{BitAnd, BitOr, BitXor};

/// The element-wise definition of an operation, from which its slice functions and its kernels are generated.
pub(crate) trait Rule<T>: Copy {
    /// A partial result.
    type Accumulator: Copy;

    /// The first contribution.
    fn lift(self, element: T) -> Self::Accumulator;
    /// Two partial results, the right one's contributions after the left one's.
    fn merge(self, left: Self::Accumulator, right: Self::Accumulator) -> Self::Accumulator;
    /// The result.
    fn finish(self, accumulator: Self::Accumulator) -> T;
}

/// The sum of `Average`, divided at the end.
#[derive(Clone, Copy)]
pub(crate) struct Mean {
    pub(crate) contributions: u64,
}

/// The sum of `PreMultipliedSum`.
#[derive(Clone, Copy)]
pub(crate) struct Scaled {
    pub(crate) factor: f64,
}

/// `$lift` and `$finish` are applied to each contribution and to the result, `$merge` to what is in between.
macro_rules! rule {
    ($bound:ident, $accumulator:ty, $lift:path, $finish:path: $($rule:ty => $merge:expr;)*) => {$(
        impl<T: $bound> Rule<T> for $rule {
            type Accumulator = $accumulator;

            #[inline(always)]
            fn lift(self, element: T) -> Self::Accumulator {
                $lift(element)
            }

            #[inline(always)]
            fn merge(self, left: Self::Accumulator, right: Self::Accumulator) -> Self::Accumulator {
                $merge(left, right)
            }

            #[inline(always)]
            fn finish(self, accumulator: Self::Accumulator) -> T {
                $finish(accumulator)
            }
        }
    )*};
}

rule! { Element, T::Wide, Number::widen, T::narrow:
    Sum => Accumulate::add;
    Product => Accumulate::multiply;
}

rule! { Element, T, identity, Number::canonical:
    Min => Number::smaller;
    Max => Number::larger;
}

rule! { Integer, T, identity, identity:
    BitwiseAnd => BitAnd::bitand;
    BitwiseOr => BitOr::bitor;
    BitwiseXor => BitXor::bitxor;
}

rule! { Integer, T, truth, identity:
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
    type Accumulator = T::Wide;

    #[inline(always)]
    fn lift(self, element: T) -> T::Wide {
        element.widen()
    }

    #[inline(always)]
    fn merge(self, left: T::Wide, right: T::Wide) -> T::Wide {
        left.add(right)
    }

    #[inline(always)]
    fn finish(self, accumulator: T::Wide) -> T {
        T::narrow(accumulator.divide(T::Wide::from_f64(self.contributions as f64)))
    }
}

impl<T: Float> Rule<T> for Scaled {
    type Accumulator = T::Wide;

    #[inline(always)]
    fn lift(self, element: T) -> T::Wide {
        element.widen().multiply(T::Wide::from_f64(self.factor))
    }

    #[inline(always)]
    fn merge(self, left: T::Wide, right: T::Wide) -> T::Wide {
        left.add(right)
    }

    #[inline(always)]
    fn finish(self, accumulator: T::Wide) -> T {
        T::narrow(accumulator)
    }
}

/// Of two values the one that `extreme` chooses; of equal ones that with the lower index.
macro_rules! locate {
    ($($rule:ident => $extreme:ident;)*) => {$(
        impl<V: Element> Rule<Located<V>> for $rule {
            type Accumulator = Located<V>;

            #[inline(always)]
            fn lift(self, element: Located<V>) -> Located<V> {
                Located::new(element.value().canonical(), element.index())
            }

            #[inline(always)]
            fn merge(self, left: Located<V>, right: Located<V>) -> Located<V> {
                let extreme = Located::new(left.value().$extreme(right.value()).canonical(), left.index());
                let [is_left, is_right] = [left, right].map(|located| located.has_same_value(extreme));
                match (is_left, is_right) {
                    (true, true) if right.index() < left.index() => right,
                    (false, _) => right,
                    _ => left,
                }
            }

            #[inline(always)]
            fn finish(self, accumulator: Located<V>) -> Located<V> {
                accumulator
            }
        }
    )*};
}

locate! {
    MinLoc => smaller;
    MaxLoc => larger;
}
