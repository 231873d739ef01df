//! The operations that have kernels.

use super::{MaxLoc, MinLoc, OperationId, Properties, Reduction, ReproducibleAverage, ReproducibleSum};
use crate::gradient::StaticReduction;
use crate::layout::Fingerprint;
use crate::reduce::rule::{Mean, Scaled, WideMean};
use crate::reduce::{Kernel, slices};
use crate::{Arithmetic, Element, Float, Integer};

/// The sum. Integers wrap around; bf16, f16 and f8 are summed in f32 and rounded once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum;

/// The sum, divided once at the end by the number of contributions. Floats only:
///
/// ```compile_fail,E0277
/// use gradwire_schema::{Reduction, operation::Average};
/// let _ = Reduction::<i32>::properties(&Average);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Average;

/// The sum of floats in f64, rounded once at the end. On f64 it is [`Sum`].
///
/// Narrower formats are added in rank order, whatever the algorithm and wherever an element lies in the call, so that
/// the bits depend on neither. They are those of the exact sum, rounded to nearest, unless that lies within `n` times
/// 2⁻⁵³ of the sum of all magnitudes from the middle between two neighbours, `n` being the number of ranks. With two ranks
/// they are those of [`Sum`].
///
/// What it costs: a partial sum cannot travel as an element, so fewer algorithms are possible, and every element is
/// converted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WideSum;

/// [`WideSum`], divided in f64 by the number of contributions before it is rounded. For f64 it is [`Average`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WideAverage;

/// The product. Integers wrap around; bf16, f16 and f8 are multiplied in f32 and rounded once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Product;

/// The smallest. NaN wins over numbers, and -0 is smaller than +0, so that the order of contributions never shows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Min;

/// The largest. NaN wins over numbers, and +0 is larger than -0, so that the order of contributions never shows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Max;

/// Bits that are set in all contributions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BitwiseAnd;

/// Bits that are set in any contribution.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BitwiseOr;

/// Bits that are set in an odd number of contributions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BitwiseXor;

/// 1 if no contribution is 0, else 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogicalAnd;

/// 1 if a contribution is not 0, else 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogicalOr;

/// 1 if an odd number of contributions are not 0, else 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LogicalXor;

/// The sum of the contributions, each multiplied by the factor first. Floats only. Ranks with different factors
/// call different operations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PreMultipliedSum {
    /// Rounded to the accumulator's format: f64 for f64, f32 for all others.
    pub factor: f64,
}

/// Implements a [`Reduction`] that is a rule by itself and has no parameters.
macro_rules! reduction {
    ($(<$parameter:ident: $bound:ident> $operation:ident on $element:ty, in $accumulator:ty, $id:literal, $name:literal, exact: $exact:expr;)*) => {$(
        impl StaticReduction for $operation {
            const ID: OperationId = OperationId($id);
            const NAME: &'static str = $name;
        }

        impl<$parameter: $bound> Reduction<$element> for $operation {
            type Accumulator = $accumulator;

            fn properties(&self) -> Properties {
                Properties { id: Self::ID, name: Self::NAME, commutative: true, associative: true }
            }

            fn is_exact(&self) -> bool {
                $exact
            }

            fn lift(&self, source: &[$element], accumulators: &mut [$accumulator]) {
                crate::reduce::slices::lift(*self, source, accumulators);
            }

            fn combine(&self, accumulators: &mut [$accumulator], source: &[$element]) {
                crate::reduce::slices::combine(*self, accumulators, source);
            }

            fn merge(&self, accumulators: &mut [$accumulator], other: &[$accumulator]) {
                crate::reduce::slices::merge::<$element, _>(*self, accumulators, other);
            }

            fn finish(&self, accumulators: &[$accumulator], _contributions: u64, destination: &mut [$element]) {
                crate::reduce::slices::finish(*self, accumulators, destination);
            }

            fn kernel(&self) -> Option<Kernel> {
                Some(Kernel::of_rule::<$element, Self>())
            }
        }
    )*};
}
pub(super) use reduction;

reduction! {
    <T: Arithmetic> Sum on T, in T::Wide, 1, "sum", exact: !T::DATATYPE.is_float();
    <T: Arithmetic> Product on T, in T::Wide, 3, "product", exact: !T::DATATYPE.is_float();
    <T: Element> Min on T, in T, 4, "min", exact: true;
    <T: Element> Max on T, in T, 5, "max", exact: true;
    <T: Integer> BitwiseAnd on T, in T, 8, "bitwise_and", exact: true;
    <T: Integer> BitwiseOr on T, in T, 9, "bitwise_or", exact: true;
    <T: Integer> BitwiseXor on T, in T, 10, "bitwise_xor", exact: true;
    <T: Integer> LogicalAnd on T, in T, 11, "logical_and", exact: true;
    <T: Integer> LogicalOr on T, in T, 12, "logical_or", exact: true;
    <T: Integer> LogicalXor on T, in T, 13, "logical_xor", exact: true;
    <T: Float> WideSum on T, in f64, 14, "wide_sum", exact: false;
}

impl StaticReduction for Average {
    const ID: OperationId = OperationId(2);
    const NAME: &'static str = "average";
}

impl<T: Float> Reduction<T> for Average {
    type Accumulator = T::Wide;

    fn properties(&self) -> Properties {
        Properties { id: Self::ID, name: Self::NAME, commutative: true, associative: true }
    }

    fn lift(&self, source: &[T], accumulators: &mut [T::Wide]) {
        slices::lift(Sum, source, accumulators);
    }

    fn combine(&self, accumulators: &mut [T::Wide], source: &[T]) {
        slices::combine(Sum, accumulators, source);
    }

    fn merge(&self, accumulators: &mut [T::Wide], other: &[T::Wide]) {
        slices::merge::<T, _>(Sum, accumulators, other);
    }

    fn finish(&self, accumulators: &[T::Wide], contributions: u64, destination: &mut [T]) {
        slices::finish(Mean { contributions }, accumulators, destination);
    }

    fn kernel(&self) -> Option<Kernel> {
        Some(Kernel::of_average::<T>())
    }
}

impl StaticReduction for WideAverage {
    const ID: OperationId = OperationId(15);
    const NAME: &'static str = "wide_average";
}

impl<T: Float> Reduction<T> for WideAverage {
    type Accumulator = f64;

    fn properties(&self) -> Properties {
        Properties { id: Self::ID, name: Self::NAME, commutative: true, associative: true }
    }

    fn lift(&self, source: &[T], accumulators: &mut [f64]) {
        slices::lift(WideSum, source, accumulators);
    }

    fn combine(&self, accumulators: &mut [f64], source: &[T]) {
        slices::combine(WideSum, accumulators, source);
    }

    fn merge(&self, accumulators: &mut [f64], other: &[f64]) {
        slices::merge::<T, _>(WideSum, accumulators, other);
    }

    fn finish(&self, accumulators: &[f64], contributions: u64, destination: &mut [T]) {
        slices::finish(WideMean { contributions }, accumulators, destination);
    }

    fn kernel(&self) -> Option<Kernel> {
        Some(Kernel::of_wide_average::<T>())
    }
}

impl PreMultipliedSum {
    /// Its identity between ranks, the factor included.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        // The hash gives up its two upper bits: they mark users' operations and this one.
        let hash = Fingerprint::new().name("pre_multiplied_sum").number(self.factor.to_bits()).finish();
        OperationId(hash & (OperationId::PRE_MULTIPLIED - 1) | OperationId::PRE_MULTIPLIED)
    }
}

impl<T: Float> Reduction<T> for PreMultipliedSum {
    type Accumulator = T::Wide;

    fn properties(&self) -> Properties {
        Properties { id: self.id(), name: "pre_multiplied_sum", commutative: true, associative: true }
    }

    fn lift(&self, source: &[T], accumulators: &mut [T::Wide]) {
        slices::lift(Scaled { factor: self.factor }, source, accumulators);
    }

    fn combine(&self, accumulators: &mut [T::Wide], source: &[T]) {
        slices::combine(Scaled { factor: self.factor }, accumulators, source);
    }

    fn merge(&self, accumulators: &mut [T::Wide], other: &[T::Wide]) {
        slices::merge::<T, _>(Scaled { factor: self.factor }, accumulators, other);
    }

    fn finish(&self, accumulators: &[T::Wide], _contributions: u64, destination: &mut [T]) {
        slices::finish(Scaled { factor: self.factor }, accumulators, destination);
    }

    fn kernel(&self) -> Option<Kernel> {
        Some(Kernel::of_pre_multiplied_sum::<T>(self.factor))
    }
}

/// Identities and names of the operations without parameters.
pub(super) const NAMES: [(OperationId, &str); 17] = [
    named::<Sum>(),
    named::<Average>(),
    named::<Product>(),
    named::<Min>(),
    named::<Max>(),
    named::<MinLoc>(),
    named::<MaxLoc>(),
    named::<BitwiseAnd>(),
    named::<BitwiseOr>(),
    named::<BitwiseXor>(),
    named::<LogicalAnd>(),
    named::<LogicalOr>(),
    named::<LogicalXor>(),
    named::<WideSum>(),
    named::<WideAverage>(),
    named::<ReproducibleSum>(),
    named::<ReproducibleAverage>(),
];

const fn named<R: StaticReduction>() -> (OperationId, &'static str) {
    (R::ID, R::NAME)
}
