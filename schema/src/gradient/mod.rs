//! The trait behind `#[derive(Gradient)]`, and its form on the wire.

mod encode;
mod field;
mod flatbuffers;
mod header;
mod reduce;
mod shape;
mod view;
pub mod wire;

pub use encode::{EncodeError, Parts};
pub use field::{
    DefaultReduction, Field, Item, Nested, Numbers, StaticReduction, TensorField, TensorReduction,
};
pub use header::{Header, HeaderError};
pub use reduce::ReduceError;
pub use shape::Extents;
pub use view::{Reader, TensorName, ViewError};

use crate::{ConvertTo, Element, Layout, Reduction, layout};
use std::fmt;
use std::io::IoSlice;

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

    /// Bytes of the header and the lengths on the wire: of the prefix that [`encode`](Self::encode) fills.
    const PREFIX_SIZE: usize = Self::LAYOUT.prefix_size();
    /// The most slices that [`encode`](Self::encode) makes.
    const MAX_PARTS: usize = Self::LAYOUT.parts;

    /// Borrows received bytes: a struct with the same fields, each a reference to its tensor.
    type View<'a>: Copy + fmt::Debug;

    /// Shows every tensor to `visitor`, in layout order.
    ///
    /// # Errors
    ///
    /// The visitor's first error.
    fn visit<V: FieldVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error>;

    /// Shows the bytes of every tensor to `parts`, in layout order.
    fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P);

    /// Reads every tensor from `reader`, in layout order. To read a whole gradient call [`view`](Self::view).
    ///
    /// # Errors
    ///
    /// The reader's first error.
    fn read<'a>(reader: &mut Reader<'a>) -> Result<Self::View<'a>, ViewError>;

    /// The header of this gradient on the wire.
    #[must_use]
    fn header(&self) -> Header {
        encode::header(self)
    }

    /// The gradient as slices for a vectored write. Header and lengths are written to `prefix`, at least
    /// [`PREFIX_SIZE`](Self::PREFIX_SIZE) bytes; `parts` has room for [`MAX_PARTS`](Self::MAX_PARTS) slices and those
    /// in use come back. Nothing is copied but the prefix, nothing allocated.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] when `prefix` or `parts` are too short.
    #[inline]
    fn encode<'a, 'p>(
        &'a self,
        prefix: &'a mut [u8],
        parts: &'p mut [IoSlice<'a>],
    ) -> Result<&'p mut [IoSlice<'a>], EncodeError> {
        encode::encode(self, prefix, parts)
    }

    /// Shows the gradient on the wire to `see`, piece by piece: for writers that take one slice at a time.
    fn for_each_part(&self, mut see: impl FnMut(&[u8])) {
        encode::for_each_part(self, &mut see);
    }

    /// Borrows a whole gradient from received bytes, after all checks. Nothing is copied, nothing allocated. The bytes
    /// start at a multiple of 8 in memory, in debug and release builds alike.
    ///
    /// # Errors
    ///
    /// [`ViewError`] when the bytes are no gradient of this type, complete and undamaged as far as header, lengths and
    /// padding tell.
    #[inline]
    fn view(bytes: &[u8]) -> Result<Self::View<'_>, ViewError>
    where
        Self: Sized,
    {
        view::view::<Self>(bytes)
    }

    /// Reduces each tensor with the one in `bytes` by its own operation, in place: a result of two contributions, the
    /// own one first. An average is divided by two, so to average more than two reduce them together.
    ///
    /// # Errors
    ///
    /// [`ReduceError`] when the bytes are no gradient of this type, or a run-time length differs. Nothing is changed
    /// then.
    fn reduce_from(&mut self, bytes: &[u8]) -> Result<(), ReduceError>
    where
        Self: Sized,
    {
        reduce::reduce_from(self, bytes)
    }

    /// The struct as a FlatBuffers schema, for peers in other languages.
    #[must_use]
    fn schema() -> String {
        flatbuffers::schema(Self::LAYOUT)
    }
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
