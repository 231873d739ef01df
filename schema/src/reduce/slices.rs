//! The operations on slices in private memory. Slices of one call have the same length; what one has more is left
//! alone.

#![forbid(unsafe_code)]

use super::rule::Rule;

/// The first contribution.
pub(crate) fn lift<T: Copy, R: Rule<T>>(rule: R, source: &[T], accumulators: &mut [R::Accumulator]) {
    for (accumulator, element) in accumulators.iter_mut().zip(source) {
        *accumulator = rule.lift(*element);
    }
}

/// One more contribution, from the right.
pub(crate) fn combine<T: Copy, R: Rule<T>>(rule: R, accumulators: &mut [R::Accumulator], source: &[T]) {
    for (accumulator, element) in accumulators.iter_mut().zip(source) {
        *accumulator = rule.merge(*accumulator, rule.lift(*element));
    }
}

/// A partial result, from the right.
pub(crate) fn merge<T, R: Rule<T>>(rule: R, accumulators: &mut [R::Accumulator], other: &[R::Accumulator]) {
    for (accumulator, other) in accumulators.iter_mut().zip(other) {
        *accumulator = rule.merge(*accumulator, *other);
    }
}

/// The result.
pub(crate) fn finish<T: Copy, R: Rule<T>>(rule: R, accumulators: &[R::Accumulator], destination: &mut [T]) {
    for (destination, accumulator) in destination.iter_mut().zip(accumulators) {
        *destination = rule.finish(*accumulator);
    }
}
