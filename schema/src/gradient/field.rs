//! What a field of a `Gradient` can be: a tensor or a nested struct.
//!
//! The derived code asks these traits, so it need not know what a type is by its name: aliases and generic
//! parameters work, and what cannot be a field is told by the compiler at the field.

use super::{Extents, FieldVisitor, Gradient, Parts, Reader, TensorName, ViewError};
use crate::layout::{self, FieldKind, Tensor};
use crate::{ConvertTo, Element, OperationId, Reduction};
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A type that a field of a `Gradient` may have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a `Gradient`",
    label = "neither a tensor nor a struct with `#[derive(Gradient)]`",
    note = "a tensor is a number of a fixed width (`f32`, `bf16`, `u64`, ...), an array of such, or a `Vec<T>`, `Box<[T]>` or `Box<[T; N]>` of either",
    note = "inner extents are constant: write `Vec<[f32; N]>` for `Vec<Vec<f32>>`; give each nested struct a field of its own for a `Vec` of structs",
    note = "put `#[derive(Gradient)]` on a struct to nest it, `T: Element`, `T: Float` or `T: Gradient` on a type parameter, and `#[gradient(skip)]` on a field that is to stay out"
)]
pub trait Field {
    /// [`Numbers`] or [`Nested`].
    type Kind;
    /// The field in received bytes.
    type View<'a>: Copy + fmt::Debug;

    /// Shows its tensors as bytes.
    fn parts<'a, P: Parts<'a>>(&'a self, parts: &mut P);

    /// Reads its tensors.
    ///
    /// # Errors
    ///
    /// The reader's first error.
    fn read<'a>(reader: &mut Reader<'a>, name: TensorName) -> Result<Self::View<'a>, ViewError>;
}

/// The kind of fields that are tensors.
#[derive(Debug)]
pub enum Numbers {}

/// The kind of fields that are structs of their own.
#[derive(Debug)]
pub enum Nested {}

/// A tensor: numbers in memory, one after the other.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor, so `reduce` and `wire` mean nothing here",
    label = "not a tensor",
    note = "a nested struct names its operations on its own fields: remove the attribute here"
)]
pub trait TensorField: Field<Kind = Numbers> {
    /// The number it is made of.
    type Element: Element;
    /// The extents known at compile time, outermost first; without the one known at run time only.
    const SHAPE: &'static [usize];
    /// Whether the outermost extent is known at run time only.
    const RUN_TIME_LENGTH: bool;

    /// All numbers, in row-major order.
    fn values_mut(&mut self) -> &mut [Self::Element];
}

/// What a `Vec` or an array in a `Gradient` may hold: numbers and arrays of numbers, up to eight dimensions.
#[diagnostic::on_unimplemented(
    message = "a tensor cannot be made of `{Self}`",
    label = "neither a number nor an array of numbers",
    note = "numbers are `f64 f32 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64`: of a fixed width, so that ranks agree; write `u64` or `i64` for `usize` or `isize`",
    note = "the inner extents of a tensor are constant: write `Vec<[f32; N]>` for `Vec<Vec<f32>>`, and give each nested struct a field of its own",
    note = "for a type parameter add a bound: `T: Element` or `T: Float`"
)]
pub trait Item:
    TensorField + FromBytes + IntoBytes + Immutable + KnownLayout + Copy + fmt::Debug + Send + Sync + 'static
{
    /// The extents: `SHAPE` in a form that grows at compile time.
    #[doc(hidden)]
    const EXTENTS: &'static Extents;

    /// The numbers of all items.
    fn flatten(items: &[Self]) -> &[Self::Element];
    /// The numbers of all items.
    fn flatten_mut(items: &mut [Self]) -> &mut [Self::Element];
}

/// A reduction that a field can name: a unit struct whose identity is known at compile time.
///
/// ```
/// # use gradwire_schema::{OperationId, gradient::StaticReduction};
/// #[derive(Clone, Copy, Debug)]
/// struct Clip; // and `impl Reduction<f32> for Clip`, with the same identity in its properties
///
/// impl StaticReduction for Clip {
///     const ID: OperationId = OperationId::of_name("clip");
///     const NAME: &'static str = "clip";
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be named in `#[gradient(reduce = ...)]`",
    note = "a reduction of your own is a unit struct that implements `Reduction<T>` and `StaticReduction`"
)]
pub trait StaticReduction {
    /// Its identity between ranks: that of its `Properties`.
    const ID: OperationId;
    /// For messages.
    const NAME: &'static str;
}

/// How a field without an attribute is reduced: tensors by the struct's default, nested structs by their own rules.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot reduce `{F}`",
    note = "tensors can be reduced, by `Sum`, `Average`, `Product`, `Min`, `Max`, the bitwise and logical operations, and by your own",
    note = "an operation of your own is a unit struct that implements `Reduction<T>` for the field's numbers, and `StaticReduction`"
)]
#[doc(hidden)]
pub trait DefaultReduction<Kind, F: ?Sized> {
    /// The field in the layout.
    const KIND: FieldKind;

    /// Shows the field to a visitor.
    fn visit<V: FieldVisitor>(
        &self,
        values: &mut F,
        field: &'static layout::Field,
        visitor: &mut V,
    ) -> Result<(), V::Error>;
}

impl<F: TensorField, R: Reduction<F::Element> + StaticReduction> DefaultReduction<Numbers, F> for R {
    const KIND: FieldKind = <R as TensorReduction<F::Element, F>>::KIND;

    fn visit<V: FieldVisitor>(
        &self,
        values: &mut F,
        field: &'static layout::Field,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        TensorReduction::<F::Element, F>::visit(self, values, field, visitor)
    }
}

impl<F: Gradient, R> DefaultReduction<Nested, F> for R {
    const KIND: FieldKind = FieldKind::Nested(F::LAYOUT);

    fn visit<V: FieldVisitor>(
        &self,
        values: &mut F,
        field: &'static layout::Field,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        visitor.enter(field)?;
        values.visit(visitor)?;
        visitor.leave()
    }
}

/// How a field with an attribute is reduced: it must be a tensor, and travels as `W`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot reduce `{F}`",
    note = "tensors can be reduced, by `Sum`, `Average`, `Product`, `Min`, `Max`, the bitwise and logical operations, and by your own",
    note = "an operation of your own is a unit struct that implements `Reduction<T>` for the field's numbers, and `StaticReduction`"
)]
#[doc(hidden)]
pub trait TensorReduction<W, F: ?Sized> {
    /// The field in the layout.
    const KIND: FieldKind;

    /// Shows the field to a visitor.
    fn visit<V: FieldVisitor>(
        &self,
        values: &mut F,
        field: &'static layout::Field,
        visitor: &mut V,
    ) -> Result<(), V::Error>;
}

impl<F, W, R> TensorReduction<W, F> for R
where
    F: TensorField<Element: ConvertTo<W>>,
    W: Element,
    R: Reduction<W> + StaticReduction,
{
    const KIND: FieldKind = FieldKind::Tensor(Tensor {
        datatype: F::Element::DATATYPE,
        wire: W::DATATYPE,
        operation: R::ID,
        operation_name: R::NAME,
        shape: F::SHAPE,
        run_time_length: F::RUN_TIME_LENGTH,
    });

    fn visit<V: FieldVisitor>(
        &self,
        values: &mut F,
        field: &'static layout::Field,
        visitor: &mut V,
    ) -> Result<(), V::Error> {
        match &field.kind {
            FieldKind::Tensor(tensor) => {
                visitor.tensor::<F::Element, W, R>(field, tensor, values.values_mut(), self)
            }
            FieldKind::Nested(_) => visitor.enter(field),
        }
    }
}

impl OperationId {
    /// The identity of a user's operation of this name.
    #[must_use]
    pub const fn of_name(name: &str) -> Self {
        Self(layout::fingerprint_of_name(name) | 1 << 63)
    }
}
