//! Holds a visit to the layout.
//!
//! No code trusts a `Gradient` written by hand: whoever visits one does so through [`Checked`]. It allocates nothing.

use super::{Field, FieldKind, Layout, Tensor};
use crate::{ConvertTo, Datatype, Element, FieldVisitor, OperationId, Reduction};
use std::convert::Infallible;

/// How deep structs may be nested.
pub const MAX_DEPTH: usize = 16;

/// Passes a visit on to `V` as long as it keeps to the layout. What `V` sees are the layout's own fields.
#[derive(Debug)]
pub struct Checked<V> {
    visitor: V,
    /// The fields still to come: the innermost struct's at `depth`.
    rest: [&'static [Field]; MAX_DEPTH],
    depth: usize,
}

impl<V: FieldVisitor> Checked<V> {
    /// A check that begins with the first field of `layout`.
    #[must_use]
    pub fn new(layout: &'static Layout, visitor: V) -> Self {
        let mut rest: [&'static [Field]; MAX_DEPTH] = [&[]; MAX_DEPTH];
        rest[0] = layout.fields;
        Self { visitor, rest, depth: 0 }
    }

    /// The visit is over.
    ///
    /// # Errors
    ///
    /// [`LayoutError::Missing`] when fields are.
    pub fn finish(&self) -> Result<(), CheckError<V::Error>> {
        match self.rest[..=self.depth].iter().rev().find_map(|fields| fields.first()) {
            None if self.depth == 0 => Ok(()),
            missing => {
                Err(LayoutError::Missing { field: missing.map_or("leave", |field| field.name) }.into())
            }
        }
    }

    /// The visitor.
    pub fn into_inner(self) -> V {
        self.visitor
    }

    /// The next field of the layout, which must be the one named.
    fn next(&mut self, seen: &'static Field) -> Result<&'static Field, LayoutError> {
        let Some((expected, rest)) = self.rest[self.depth].split_first() else {
            return Err(LayoutError::TooMany { field: seen.name });
        };
        if expected.name != seen.name {
            return Err(LayoutError::Order { expected: expected.name, found: seen.name });
        }
        self.rest[self.depth] = rest;
        Ok(expected)
    }
}

impl<V: FieldVisitor> FieldVisitor for Checked<V> {
    type Error = CheckError<V::Error>;

    fn tensor<T, W, R>(
        &mut self,
        field: &'static Field,
        _: &'static Tensor,
        values: &mut [T],
        reduction: &R,
    ) -> Result<(), Self::Error>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        let field = self.next(field)?;
        let FieldKind::Tensor(tensor) = &field.kind else {
            return Err(LayoutError::Kind { field: field.name, expected: "a nested struct" }.into());
        };
        check_tensor(field.name, tensor, T::DATATYPE, W::DATATYPE, reduction.properties().id, values.len())?;
        self.visitor.tensor::<T, W, R>(field, tensor, values, reduction).map_err(CheckError::Visitor)
    }

    fn enter(&mut self, field: &'static Field) -> Result<(), Self::Error> {
        let field = self.next(field)?;
        let FieldKind::Nested(layout) = &field.kind else {
            return Err(LayoutError::Kind { field: field.name, expected: "a tensor" }.into());
        };
        let Some(rest) = self.rest.get_mut(self.depth + 1) else {
            return Err(LayoutError::TooDeep { field: field.name }.into());
        };
        *rest = layout.fields;
        self.depth += 1;
        self.visitor.enter(field).map_err(CheckError::Visitor)
    }

    fn leave(&mut self) -> Result<(), Self::Error> {
        if let Some(missing) = self.rest[self.depth].first() {
            return Err(LayoutError::Missing { field: missing.name }.into());
        }
        self.depth = self.depth.checked_sub(1).ok_or(LayoutError::TooMany { field: "leave" })?;
        self.visitor.leave().map_err(CheckError::Visitor)
    }
}

fn check_tensor(
    field: &'static str,
    tensor: &Tensor,
    datatype: Datatype,
    wire: Datatype,
    operation: OperationId,
    length: usize,
) -> Result<(), LayoutError> {
    if datatype != tensor.datatype {
        return Err(LayoutError::Datatype { field, expected: tensor.datatype, found: datatype });
    }
    if wire != tensor.wire {
        return Err(LayoutError::Wire { field, expected: tensor.wire, found: wire });
    }
    if operation != tensor.operation {
        return Err(LayoutError::Operation { field, expected: tensor.operation_name });
    }
    let elements = tensor.elements();
    let fits =
        if tensor.run_time_length { length.checked_rem(elements) } else { Some(length.abs_diff(elements)) };
    if fits.unwrap_or(length) != 0 {
        return Err(LayoutError::Length {
            field,
            elements,
            run_time_length: tensor.run_time_length,
            found: length,
        });
    }
    Ok(())
}

/// Why a checked visit ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CheckError<E> {
    /// The gradient does not keep to its layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The visitor wanted no more.
    #[error("{0}")]
    Visitor(E),
}

impl CheckError<Infallible> {
    /// The only reason there can be.
    #[must_use]
    pub fn layout(self) -> LayoutError {
        match self {
            Self::Layout(error) => error,
            Self::Visitor(never) => match never {},
        }
    }
}

/// A `Gradient` written by hand shows other tensors than its layout says. A derived one cannot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum LayoutError {
    /// Fields come in another order.
    #[error(
        "`visit` shows field `{found}` where the layout has `{expected}`: show the fields in layout order"
    )]
    Order { expected: &'static str, found: &'static str },
    /// More fields than the layout has.
    #[error("`visit` shows `{field}` after the layout's last field")]
    TooMany { field: &'static str },
    /// Fewer fields than the layout has.
    #[error("`visit` leaves out `{field}`, which the layout has")]
    Missing { field: &'static str },
    /// A tensor for a struct or a struct for a tensor.
    #[error("field `{field}` is {expected} in the layout, but `visit` shows something else")]
    Kind { field: &'static str, expected: &'static str },
    /// Another format in memory.
    #[error("field `{field}` is {} in the layout, but `visit` shows {}", expected.name(), found.name())]
    Datatype { field: &'static str, expected: Datatype, found: Datatype },
    /// Another format on the wire.
    #[error("field `{field}` travels as {} in the layout, but `visit` sends it as {}", expected.name(), found.name())]
    Wire { field: &'static str, expected: Datatype, found: Datatype },
    /// Another operation.
    #[error("field `{field}` is reduced by `{expected}` in the layout, but `visit` names another operation")]
    Operation { field: &'static str, expected: &'static str },
    /// A number of elements that does not go with the shape.
    #[error("field `{field}` has {found} elements; its layout asks for {}{elements}",
        if *run_time_length { "a multiple of " } else { "" })]
    Length { field: &'static str, elements: usize, run_time_length: bool, found: usize },
    /// Too many structs inside each other.
    #[error("struct `{field}` is nested deeper than {MAX_DEPTH} levels")]
    TooDeep { field: &'static str },
}
