//! Elements: the numbers that tensors are made of.

use crate::reduce::number::{Number, Precise, Real};
use crate::{Datatype, Equivalence, F8E4m3, F8E5m2};
use half::{bf16, f16};
use std::ops::{BitAnd, BitOr, BitXor};
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute};

/// A number that can be moved and reduced. Sealed: code that reads raw memory relies on it.
pub trait Element:
    Equivalence
    + Number
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
    /// The unsigned integer of the same size.
    type Bits: Integer;

    /// The bit pattern.
    fn into_raw_bits(self) -> Self::Bits;
    /// The number with this bit pattern.
    fn from_raw_bits(bits: Self::Bits) -> Self;
}

/// Numbers with addition and multiplication: every element.
pub trait Arithmetic: Element {}

/// Floating-point elements: those that can be averaged.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be averaged: an average of integers is not an integer",
    note = "use `Sum` and divide, or make the field a float"
)]
pub trait Float: Arithmetic + Number<Wide: Real> + Precise {}

/// Integer elements: those with bitwise operations.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bitwise operations",
    note = "bitwise and logical reductions work on integers"
)]
pub trait Integer:
    Arithmetic + Ord + From<bool> + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
}

macro_rules! element {
    ($($type:ty => $datatype:ident, $bits:ty, $class:ident;)*) => {$(
        #[allow(clippy::useless_transmute, reason = "useless for unsigned integers only")]
        impl Element for $type {
            const DATATYPE: Datatype = Datatype::$datatype;
            type Bits = $bits;

            #[inline(always)]
            fn into_raw_bits(self) -> $bits {
                transmute!(self)
            }

            #[inline(always)]
            fn from_raw_bits(bits: $bits) -> Self {
                transmute!(bits)
            }
        }
        impl Arithmetic for $type {}
        impl $class for $type {}
    )*};
}

element! {
    f64 => F64, u64, Float;
    f32 => F32, u32, Float;
    f16 => F16, u16, Float;
    bf16 => Bf16, u16, Float;
    F8E4m3 => F8E4m3, u8, Float;
    F8E5m2 => F8E5m2, u8, Float;
    i8 => I8, u8, Integer;
    i16 => I16, u16, Integer;
    i32 => I32, u32, Integer;
    i64 => I64, u64, Integer;
    u8 => U8, u8, Integer;
    u16 => U16, u16, Integer;
    u32 => U32, u32, Integer;
    u64 => U64, u64, Integer;
}
