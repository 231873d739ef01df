//! Sums in which neither the order nor the grouping of the contributions shows.

use super::builtin::reduction;
use super::{OperationId, Properties, Reduction};
use crate::Float;
use crate::gradient::StaticReduction;
use crate::reduce::bins::PartialSum;
use crate::reduce::{Kernel, slices};

/// The sum, with the same bits for the same contributions, in whatever order and however they are spread over ranks.
/// Floats only: sums of integers are so anyway.
///
/// Every contribution counts with at least the 65 bits below the leading bit of the largest one: of `n` contributions
/// whose largest is `m`, the result is the exact sum within `n · m · 2⁻⁶⁴`, rounded once. It neither overflows on the way
/// nor flushes subnormals. A NaN among the contributions, or both infinities, make it NaN; so do more than 2³¹
/// contributions.
///
/// A rank that has several contributions sums them to a [`PartialSum`], which is reduced by the same operation:
///
/// ```
/// use gradwire_schema::Reduction;
/// use gradwire_schema::operation::{PartialSum, ReproducibleSum};
///
/// let (mut here, mut there, mut sum) = ([PartialSum::default()], [PartialSum::default()], [0.0_f32]);
/// ReproducibleSum.combine(&mut here, &[1.0e30_f32]);
/// ReproducibleSum.combine(&mut here, &[1.0_f32]);
/// ReproducibleSum.combine(&mut there, &[-1.0e30_f32]);
/// Reduction::<f32>::merge(&ReproducibleSum, &mut here, &there);
/// ReproducibleSum.finish(&here, 3, &mut sum);
/// assert_eq!(sum, [0.0], "1 lies more than 64 bits below 1e30");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReproducibleSum;

/// The [`ReproducibleSum`], rounded to f64 and divided by the number of contributions, which is that of all ranks where
/// ranks have several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReproducibleAverage;

reduction! {
    <T: Float> ReproducibleSum on T, in PartialSum, 16, "reproducible_sum", exact: true;
    <T: Float> ReproducibleAverage on T, in PartialSum, 17, "reproducible_average", exact: true;
}

/// Partial sums are merged, and stay partial.
macro_rules! of_partial_sums {
    ($($operation:ident)*) => {$(
        impl Reduction<PartialSum> for $operation {
            type Accumulator = PartialSum;

            fn properties(&self) -> Properties {
                Reduction::<f64>::properties(self)
            }

            fn is_exact(&self) -> bool {
                true
            }

            fn lift(&self, source: &[PartialSum], accumulators: &mut [PartialSum]) {
                slices::lift::<PartialSum, _>(*self, source, accumulators);
            }

            fn combine(&self, accumulators: &mut [PartialSum], source: &[PartialSum]) {
                slices::merge::<PartialSum, _>(*self, accumulators, source);
            }

            fn merge(&self, accumulators: &mut [PartialSum], other: &[PartialSum]) {
                slices::merge::<PartialSum, _>(*self, accumulators, other);
            }

            fn finish(&self, accumulators: &[PartialSum], _: u64, destination: &mut [PartialSum]) {
                slices::finish(*self, accumulators, destination);
            }

            fn kernel(&self) -> Option<Kernel> {
                Some(Kernel::of_rule::<PartialSum, Self>())
            }
        }
    )*};
}

of_partial_sums! { ReproducibleSum ReproducibleAverage }
