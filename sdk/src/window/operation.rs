//! What accumulates can do.

use crate::{
    Arithmetic, BitwiseAnd, BitwiseOr, BitwiseXor, Element, Integer, LogicalAnd, LogicalOr, LogicalXor, Max,
    Min, Product, Sum,
};
use gradwire_schema::WindowUpdate;

/// An operation of [`Window::accumulate`](super::Window::accumulate) and its like, on elements of type `T`: the built-in
/// reductions that need no more than two operands, [`Replace`] and [`Keep`]. Nobody else can implement it: the owner of the memory
/// carries it out without a call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no operation on windows of `{T}`",
    note = "`Sum`, `Product`, `Min`, `Max`, `Replace` and `Keep` work on all elements, bitwise and logical ones on integers"
)]
pub trait WindowOperation<T: Element>: sealed::Sealed<T> {}

/// Writes the operand.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Replace;

/// Leaves what is there: a [`get_accumulate`](super::Window::get_accumulate) with it is a read that no other accumulate can split.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Keep;

mod sealed {
    use gradwire_schema::WindowUpdate;

    pub trait Sealed<T> {
        const UPDATE: WindowUpdate;
    }
}

/// What travels instead of the type.
pub(super) const fn update_of<T: Element, O: WindowOperation<T>>() -> WindowUpdate {
    O::UPDATE
}

macro_rules! operation {
    ($($bound:ident: $($operation:ident),*;)*) => {$($(
        impl<T: $bound> sealed::Sealed<T> for $operation {
            const UPDATE: WindowUpdate = WindowUpdate::$operation;
        }
        impl<T: $bound> WindowOperation<T> for $operation {}
    )*)*};
}

operation! {
    Arithmetic: Sum, Product;
    Element: Min, Max, Replace, Keep;
    Integer: BitwiseAnd, BitwiseOr, BitwiseXor, LogicalAnd, LogicalOr, LogicalXor;
}
