//! Reductions: typed, monomorphised operations on elements.

mod builtin;
mod located;
mod reproducible;
mod user;

pub use crate::reduce::bins::PartialSum;
pub use builtin::{
    Average, BitwiseAnd, BitwiseOr, BitwiseXor, LogicalAnd, LogicalOr, LogicalXor, Max, Min,
    PreMultipliedSum, Product, Sum, WideAverage, WideSum,
};
pub use located::{Located, MaxLoc, MinLoc};
pub use reproducible::{ReproducibleAverage, ReproducibleSum};
pub use user::{Laws, Operation};

use crate::{Equivalence, Kernel};
use std::fmt;

/// The identity of an operation between ranks: part of every call's signature. Built-in operations have
/// small stable codes; a user's operation is a hash of its name with the top bit set; parameters (the
/// factor of `PreMultipliedSum`) are folded in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OperationId(pub u64);

impl OperationId {
    /// Set in the identity of a user's operation.
    pub(crate) const USER: u64 = 1 << 63;
    /// Set in the identity of `PreMultipliedSum`; the other bits hash its factor.
    pub(crate) const PRE_MULTIPLIED: u64 = 1 << 62;

    /// The name of a built-in operation, for messages; `None` for a user's operation and for unknown codes.
    #[must_use]
    pub fn built_in_name(self) -> Option<&'static str> {
        if self.0 & Self::USER == 0 && self.0 & Self::PRE_MULTIPLIED != 0 {
            return Some("pre_multiplied_sum");
        }
        builtin::NAMES.iter().find(|(id, _)| *id == self).map(|(_, name)| *name)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.built_in_name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "operation {:#018x}", self.0),
        }
    }
}

/// What the planner may assume of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Properties {
    /// Its identity between ranks.
    pub id: OperationId,
    /// For error messages: `sum`, `max`, ...
    pub name: &'static str,
    /// `a . b` is `b . a`.
    pub commutative: bool,
    /// `(a . b) . c` is `a . (b . c)`, up to rounding.
    pub associative: bool,
}

/// An operation that reduces the contributions of many ranks to one result.
///
/// `combine(lift(a), b)`, `merge` and `finish` define the result; bf16 sums lift to f32, Average divides once,
/// in `finish`. All slices of one call have the same length; what one has more is left alone.
///
/// Built-in operations give the same bits on every processor: they round to nearest, ties to even, and each NaN result is
/// the canonical quiet NaN. They expect the float environment that Rust promises: subnormals are not flushed.
pub trait Reduction<T: Equivalence>: Clone + fmt::Debug + Send + Sync + 'static {
    /// A partial result.
    type Accumulator: Equivalence + Default;

    /// What may be assumed.
    fn properties(&self) -> Properties;
    /// Whether the result depends on nothing but the contributions: neither their order nor their grouping shows in its
    /// bits. So it is with integers and extremes, and not with sums of floats.
    fn is_exact(&self) -> bool {
        false
    }

    /// The first contribution.
    fn lift(&self, source: &[T], accumulators: &mut [Self::Accumulator]);
    /// One more contribution, from the right.
    fn combine(&self, accumulators: &mut [Self::Accumulator], source: &[T]);
    /// A partial result of other contributions, from the right.
    fn merge(&self, accumulators: &mut [Self::Accumulator], other: &[Self::Accumulator]);
    /// The result of `contributions` contributions.
    fn finish(&self, accumulators: &[Self::Accumulator], contributions: u64, destination: &mut [T]);

    /// The kernel that does the same on raw memory, for built-in operations. Only this crate can make one;
    /// operations without a kernel only ever see private slices.
    #[must_use]
    fn kernel(&self) -> Option<Kernel> {
        None
    }
}
