//! Reduce kernels on raw memory.

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

/// A built-in operation on a built-in datatype, as a function on raw memory.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: unsafe fn(&Kernel, &[*const u8], &[*mut u8], usize, Option<NonZeroU64>),
    element_size: usize,
    partials: Partials,
    parameter: f64,
}

impl Kernel {
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
