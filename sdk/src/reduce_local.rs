//! A reduction without communication.

use crate::{Error, Result};
use gradwire_schema::{Equivalence, Reduction};

/// Elements that are reduced at once: few enough for the first-level cache.
const BLOCK: usize = 512;

/// Reduces two vectors of this rank, element by element, to what an `all_reduce` of two ranks would give, the first of
/// which contributes `source` and the second `destination`. For sums of more than two, see [`Reduction`].
///
/// ```
/// use gradwire::{Average, Max, reduce_local};
/// # fn main() -> gradwire::Result<()> {
/// let mut destination = [1.0_f32, 8.0];
/// reduce_local(&[5.0, 2.0], &mut destination, Max)?;
/// assert_eq!(destination, [5.0, 8.0]);
/// reduce_local(&[1.0, 2.0], &mut destination, Average)?;
/// assert_eq!(destination, [3.0, 5.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Misuse`](Error::Misuse) when the lengths differ; the destination is untouched.
pub fn reduce_local<T: Equivalence, R: Reduction<T>>(
    source: &[T],
    destination: &mut [T],
    reduction: R,
) -> Result<()> {
    if source.len() != destination.len() {
        let (found, expected) = (destination.len(), source.len());
        let text = format!("the destination has {found} elements: make it {expected} long, as the source is");
        return Err(Error::Misuse(text.into()));
    }
    let mut accumulators = vec![R::Accumulator::default(); BLOCK.min(source.len())];
    for (source, destination) in source.chunks(BLOCK).zip(destination.chunks_mut(BLOCK)) {
        let accumulators = &mut accumulators[..source.len()];
        reduction.lift(source, accumulators);
        reduction.combine(accumulators, destination);
        reduction.finish(accumulators, 2, destination);
    }
    Ok(())
}
