//! Reduces a gradient in memory with one that was received, tensor by tensor, where both lie.

use super::view::Reader;
use super::{FieldVisitor, Gradient, TensorName, ViewError};
use crate::layout::{CheckError, Checked, Field, LayoutError, Tensor};
use crate::{ConvertTo, Element, Reduction};

/// Elements at a time: their accumulators fit into the first-level cache.
const BLOCK: usize = 256;

/// Why two gradients could not be reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReduceError {
    /// The bytes are no gradient of the type.
    #[error(transparent)]
    View(#[from] ViewError),
    /// A gradient written by hand.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Tensors of different lengths.
    #[error(
        "`{field}` has {here} elements here and {there} in the received gradient: give both the same shape"
    )]
    Length { field: &'static str, here: usize, there: usize },
}

pub(super) fn reduce_from<G: Gradient>(gradient: &mut G, bytes: &[u8]) -> Result<(), ReduceError> {
    G::view(bytes)?;
    // The first visit compares all lengths, so that nothing is reduced unless everything can be.
    for only_compare in [true, false] {
        let pairs = Pairs { received: Reader::new(bytes, G::LAYOUT)?, only_compare };
        let mut visitor = Checked::new(G::LAYOUT, pairs);
        gradient.visit(&mut visitor).and_then(|()| visitor.finish()).map_err(|error| match error {
            CheckError::Layout(error) => error.into(),
            CheckError::Visitor(error) => error,
        })?;
    }
    Ok(())
}

/// Reduces each tensor with the next received one.
struct Pairs<'a> {
    received: Reader<'a>,
    only_compare: bool,
}

impl FieldVisitor for Pairs<'_> {
    type Error = ReduceError;

    fn tensor<T, W, R>(
        &mut self,
        field: &'static Field,
        tensor: &'static Tensor,
        values: &mut [T],
        reduction: &R,
    ) -> Result<(), ReduceError>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        let name = TensorName { structure: "", field: field.name };
        let received = self.received.numbers::<T>(tensor, name)?;
        if received.len() != values.len() {
            return Err(ReduceError::Length { field: field.name, here: values.len(), there: received.len() });
        }
        if self.only_compare {
            return Ok(());
        }
        for (own, received) in values.chunks_mut(BLOCK).zip(received.chunks(BLOCK)) {
            reduce(own, received, reduction);
        }
        Ok(())
    }
}

/// Both slices have the same length, at most [`BLOCK`].
fn reduce<T, W, R>(own: &mut [T], received: &[T], reduction: &R)
where
    T: ConvertTo<W>,
    W: Element,
    R: Reduction<W>,
{
    let mut wire = [W::default(); BLOCK];
    let wire = &mut wire[..own.len()];
    let mut accumulators = [R::Accumulator::default(); BLOCK];
    let accumulators = &mut accumulators[..own.len()];
    T::convert_to(own, wire);
    reduction.lift(wire, accumulators);
    T::convert_to(received, wire);
    reduction.combine(accumulators, wire);
    reduction.finish(accumulators, 2, wire);
    T::convert_from(wire, own);
}
