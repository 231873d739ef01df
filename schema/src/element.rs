//! Elements: the numbers that tensors are made of.

use crate::{Datatype, Equivalence};
use half::{bf16, f16};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A number that can be moved and reduced. Sealed: code that reads raw memory relies on it.
pub trait Element:
    Equivalence
    + sealed::Sealed
    + FromBytes
    + IntoBytes
    + Immutable
    + Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + crate::gradient::Item<Element = Self>
    + 'static
{
    /// Its format.
    const DATATYPE: Datatype;
}

/// Numbers with addition and multiplication: every element.
pub trait Arithmetic: Element {}

/// Floating-point elements: those that can be averaged.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be averaged: an average of integers is not an integer",
    note = "use `Sum` and divide, or make the field a float"
)]
pub trait Float: Arithmetic {}

/// Integer elements: those with bitwise operations.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bitwise operations",
    note = "bitwise and logical reductions work on integers"
)]
pub trait Integer: Arithmetic + Ord {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty => $datatype:ident, $class:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DATATYPE: Datatype = Datatype::$datatype;
        }
        impl Arithmetic for $type {}
        impl $class for $type {}
    )*};
}

element! {
    f64 => F64, Float;
    f32 => F32, Float;
    f16 => F16, Float;
    bf16 => Bf16, Float;
    i8 => I8, Integer;
    i16 => I16, Integer;
    i32 => I32, Integer;
    i64 => I64, Integer;
    u8 => U8, Integer;
    u16 => U16, Integer;
    u32 => U32, Integer;
    u64 => U64, Integer;
}
