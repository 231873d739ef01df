//! What a layout leaves open: the lengths known at run time only.

use super::{CheckError, Checked, Field, LayoutError, Tensor};
use crate::{ConvertTo, Element, FieldVisitor, Gradient, Reduction};
use std::convert::Infallible;

/// Shows the outermost extent of every tensor of run-time length to `see`, in layout order. Together with the
/// fingerprint they say all about the shape of `gradient`.
///
/// # Errors
///
/// [`LayoutError`] when a gradient written by hand does not keep to its layout.
pub fn for_each_length<G: Gradient>(gradient: &mut G, see: impl FnMut(u64)) -> Result<(), LayoutError> {
    let mut checked = Checked::new(G::LAYOUT, Lengths { see });
    gradient.visit(&mut checked).and_then(|()| checked.finish()).map_err(CheckError::layout)
}

struct Lengths<F> {
    see: F,
}

impl<F: FnMut(u64)> FieldVisitor for Lengths<F> {
    type Error = Infallible;

    fn tensor<T, W, R>(
        &mut self,
        _: &'static Field,
        tensor: &'static Tensor,
        values: &mut [T],
        _: &R,
    ) -> Result<(), Infallible>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        if tensor.run_time_length {
            (self.see)(values.len().checked_div(tensor.elements()).unwrap_or(0) as u64);
        }
        Ok(())
    }
}
