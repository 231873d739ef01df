//! Reduce kernels on raw memory.

pub(crate) mod arch;
pub(crate) mod bins;
mod fold;
pub(crate) mod number;
pub(crate) mod rule;
pub(crate) mod slices;
#[cfg(test)]
mod tests;

use self::fold::{Plain, fold};
use self::rule::{Accumulator, Mean, Rule, Scaled, WideMean};
use crate::Float;
use crate::operation::{Sum, WideSum};
use std::num::NonZeroU64;

/// Whether partial results in the elements' own format are as good as accumulators.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Partials {
    /// A partial result written to memory as an element loses nothing: any algorithm may be used.
    Exact,
    /// The accumulator holds more than an element does (bf16 sums run in f32): all contributions of an element must
    /// meet in one fold.
    Rounded,
}

type KernelFunction = unsafe fn(&Kernel, &[*const u8], &[*mut u8], usize, Option<NonZeroU64>);

/// A built-in operation on a built-in datatype, as a function on raw memory.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: KernelFunction,
    element_size: usize,
    partials: Partials,
    parameter: f64,
}

impl Kernel {
    /// The kernel of a rule without parameters.
    pub(crate) fn of_rule<T: Plain, R: Rule<T> + Default>() -> Self {
        Self::new::<T, R>(fold_rule::<T, R>)
    }

    /// The kernel of `Average`.
    pub(crate) fn of_average<T: Float>() -> Self {
        Self::new::<T, Sum>(fold_mean::<T, Sum, Mean>)
    }

    /// The kernel of `WideAverage`.
    pub(crate) fn of_wide_average<T: Float>() -> Self {
        Self::new::<T, WideSum>(fold_mean::<T, WideSum, WideMean>)
    }

    /// The kernel of `PreMultipliedSum`.
    pub(crate) fn of_pre_multiplied_sum<T: Float>(factor: f64) -> Self {
        // A partial result would be multiplied once more by the next fold.
        let partials = Partials::Rounded;
        Self { partials, parameter: factor, ..Self::new::<T, Scaled>(fold_pre_multiplied_sum::<T>) }
    }

    fn new<T: Plain, R: Rule<T>>(function: KernelFunction) -> Self {
        let accumulates_wider = size_of::<Accumulator<T, R>>() > size_of::<T>();
        let partials = if accumulates_wider { Partials::Rounded } else { Partials::Exact };
        Self { function, element_size: size_of::<T>(), partials, parameter: 0.0 }
    }

    /// Bytes of one element.
    #[must_use]
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Whether partial results may be written to memory as elements.
    #[must_use]
    pub fn partials(&self) -> Partials {
        self.partials
    }

    /// The operation's parameter (the factor of `PreMultipliedSum`), 0 where it has none.
    #[must_use]
    pub fn parameter(&self) -> f64 {
        self.parameter
    }

    /// For each of `count` elements: lifts the first source, combines the others from left to right, and writes the
    /// result to every destination. `contributions`: of how many ranks this is the final result; `None` leaves it
    /// partial (a sum not yet divided).
    ///
    /// # Safety
    ///
    /// There is at least one source. Every source is valid for reads and every destination for writes of `count *
    /// element_size` bytes, at any alignment. A destination may be one of the sources, exactly; otherwise
    /// they do not overlap. Other processes may write the sources meanwhile: then the result is unspecified, no more.
    pub unsafe fn fold(
        &self,
        sources: &[*const u8],
        destinations: &[*mut u8],
        count: usize,
        contributions: Option<NonZeroU64>,
    ) {
        // SAFETY: the caller keeps the contract above, which is that of every kernel function.
        unsafe { (self.function)(self, sources, destinations, count, contributions) }
    }
}

/// # Safety
///
/// As [`Kernel::fold`].
unsafe fn fold_rule<T: Plain, R: Rule<T> + Default>(
    _kernel: &Kernel,
    sources: &[*const u8],
    destinations: &[*mut u8],
    count: usize,
    _contributions: Option<NonZeroU64>,
) {
    // SAFETY: the caller keeps the contract of `Kernel::fold`, which is that of `fold`.
    unsafe { fold(R::default(), sources, destinations, count) }
}

/// A sum that is divided at the end, where there is one.
///
/// # Safety
///
/// As [`Kernel::fold`].
unsafe fn fold_mean<T: Plain, P: Rule<T> + Default, M: Rule<T> + From<NonZeroU64>>(
    _kernel: &Kernel,
    sources: &[*const u8],
    destinations: &[*mut u8],
    count: usize,
    contributions: Option<NonZeroU64>,
) {
    match contributions {
        // SAFETY: the caller keeps the contract of `Kernel::fold`, which is that of `fold`.
        Some(contributions) => unsafe { fold(M::from(contributions), sources, destinations, count) },
        // SAFETY: as above.
        None => unsafe { fold(P::default(), sources, destinations, count) },
    }
}

/// # Safety
///
/// As [`Kernel::fold`].
unsafe fn fold_pre_multiplied_sum<T: Float>(
    kernel: &Kernel,
    sources: &[*const u8],
    destinations: &[*mut u8],
    count: usize,
    _contributions: Option<NonZeroU64>,
) {
    let rule = Scaled { factor: kernel.parameter };
    // SAFETY: the caller keeps the contract of `Kernel::fold`, which is that of `fold`.
    unsafe { fold::<T, _>(rule, sources, destinations, count) }
}
