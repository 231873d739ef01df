//! The trait behind `#[derive(Gradient)]`.

mod field;
mod shape;
pub mod wire;

pub use field::{
    DefaultReduction, Field, Item, Nested, Numbers, StaticReduction, TensorField, TensorReduction,
};
pub use shape::Extents;

use crate::{ConvertTo, Element, Layout, Reduction, layout};

/// A struct of tensors whose values can be reduced between ranks. Derive it.
///
/// The trait is safe and no unsafe code trusts it: [`visit`](Self::visit) yields typed slices, and whoever visits
/// checks each against the layout (see [`Checked`](crate::layout::Checked)). A wrong implementation by hand is an
/// error, not undefined behaviour.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `Gradient`",
    label = "not a struct of tensors",
    note = "put `#[derive(Gradient)]` on it"
)]
pub trait Gradient {
    /// Names, datatypes, shapes, operations and wire types of all fields.
    const LAYOUT: &'static Layout;
    /// The layout's hash.
    const FINGERPRINT: u64 = Self::LAYOUT.fingerprint;

    /// Shows every tensor to `visitor`, in layout order.
    ///
    /// # Errors
    ///
    /// The visitor's first error.
    fn visit<V: FieldVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error>;
}

/// Sees the tensors of a [`Gradient`] one by one.
pub trait FieldVisitor {
    /// Why a visit may end early.
    type Error;

    /// A tensor: its place in the layout, its values, and how they are reduced once converted to the wire format `W`.
    ///
    /// # Errors
    ///
    /// Whatever ends the visit.
    fn tensor<T, W, R>(
        &mut self,
        field: &'static layout::Field,
        tensor: &'static layout::Tensor,
        values: &mut [T],
        reduction: &R,
    ) -> Result<(), Self::Error>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>;

    /// A nested struct begins. Its tensors follow, then [`leave`](Self::leave).
    ///
    /// # Errors
    ///
    /// Whatever ends the visit.
    fn enter(&mut self, field: &'static layout::Field) -> Result<(), Self::Error> {
        let _ = field;
        Ok(())
    }

    /// The nested struct ends.
    ///
    /// # Errors
    ///
    /// Whatever ends the visit.
    fn leave(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
