//! Operations that users define.

use super::{OperationId, Properties, Reduction};
use crate::Equivalence;
use std::fmt;

/// What holds for a user's operation. Nothing is assumed that is not claimed here: without claims the contributions are
/// combined one by one, in rank order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Laws {
    commutative: bool,
    associative: bool,
    exact: bool,
}

impl Laws {
    /// No claims.
    #[must_use]
    pub const fn none() -> Self {
        Self { commutative: false, associative: false, exact: false }
    }

    /// `a . b` is `b . a`.
    #[must_use]
    pub const fn commutative(self) -> Self {
        Self { commutative: true, ..self }
    }

    /// `(a . b) . c` is `a . (b . c)`, up to rounding.
    #[must_use]
    pub const fn associative(self) -> Self {
        Self { associative: true, ..self }
    }

    /// Both laws hold to the last bit, as they do for integers: neither the order nor the grouping of the contributions
    /// shows in the result.
    #[must_use]
    pub const fn exact(self) -> Self {
        Self { exact: true, ..self.commutative().associative() }
    }
}

/// An operation of the user's: `function(accumulators, source)` combines each source element into the accumulator beside
/// it, from the right.
///
/// Ranks recognise the operation by its name, so all ranks must give the same function the same name. The function only
/// ever sees private memory, may be called with any part of the data, and is called with slices of equal length.
///
/// ```
/// use gradwire_schema::operation::{Laws, Operation};
/// use gradwire_schema::Reduction;
///
/// let hypotenuse = Operation::new("hypotenuse", Laws::none().commutative().associative(), |total, source| {
///     for (total, source) in total.iter_mut().zip(source) {
///         *total = f32::hypot(*total, *source);
///     }
/// });
/// let mut total = [3.0_f32];
/// hypotenuse.combine(&mut total, &[4.0]);
/// assert_eq!(total, [5.0]);
/// ```
#[derive(Clone)]
pub struct Operation<F> {
    properties: Properties,
    exact: bool,
    function: F,
}

impl<F> Operation<F> {
    /// An operation with a name that no other operation of the job has.
    pub const fn new<T>(name: &'static str, laws: Laws, function: F) -> Self
    where
        F: Fn(&mut [T], &[T]) + Clone + Send + Sync + 'static,
    {
        let Laws { commutative, associative, exact } = laws;
        let properties = Properties { id: OperationId::of_name(name), name, commutative, associative };
        Self { properties, exact, function }
    }

    /// Its identity between ranks.
    #[must_use]
    pub const fn id(&self) -> OperationId {
        self.properties.id
    }
}

impl<F> fmt::Debug for Operation<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Operation").field(&self.properties.name).finish()
    }
}

impl<T, F> Reduction<T> for Operation<F>
where
    T: Equivalence + Default,
    F: Fn(&mut [T], &[T]) + Clone + Send + Sync + 'static,
{
    type Accumulator = T;

    fn properties(&self) -> Properties {
        self.properties
    }

    fn is_exact(&self) -> bool {
        self.exact
    }

    fn lift(&self, source: &[T], accumulators: &mut [T]) {
        copy(source, accumulators);
    }

    fn combine(&self, accumulators: &mut [T], source: &[T]) {
        (self.function)(accumulators, source);
    }

    fn merge(&self, accumulators: &mut [T], other: &[T]) {
        (self.function)(accumulators, other);
    }

    fn finish(&self, accumulators: &[T], _contributions: u64, destination: &mut [T]) {
        copy(accumulators, destination);
    }
}

fn copy<T: Copy>(source: &[T], destination: &mut [T]) {
    for (destination, source) in destination.iter_mut().zip(source) {
        *destination = *source;
    }
}
