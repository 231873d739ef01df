//! The arithmetic of each format, one element at a time. Being unreachable from outside, these traits also seal
//! `Element`.
//!
//! Everything here is free of branches on data, so that loops over it vectorise.

#![forbid(unsafe_code)]

use super::arch::{Arch, each};
use crate::float::{self, Small, canonical_f32, canonical_f64, round_to_odd};
use crate::{Element, F8E4m3, F8E5m2};
use half::{bf16, f16};

/// What every element can do.
pub trait Number: Copy {
    /// The format that sums and products are computed in.
    type Wide: Element + Accumulate;

    /// The same value, exactly.
    fn widen(self) -> Self::Wide;
    /// The nearest value of the format.
    fn narrow(wide: Self::Wide) -> Self;
    /// [`widen`](Self::widen) for each element of a block.
    fn widen_block<A: Arch, const N: usize>(arch: A, elements: &[Self; N]) -> [Self::Wide; N];
    /// [`narrow`](Self::narrow) for each element of a block.
    fn narrow_block<A: Arch, const N: usize>(arch: A, wide: &[Self::Wide; N]) -> [Self; N];
    /// The value itself, a NaN replaced by the canonical one.
    fn canonical(self) -> Self;
    /// The smaller value. NaN wins, and -0 is smaller than +0.
    fn smaller(self, other: Self) -> Self;
    /// The larger value. NaN wins, and +0 is larger than -0.
    fn larger(self, other: Self) -> Self;
}

/// What every float can do besides: to go by way of f64.
pub trait Precise: Number {
    /// The same values, exactly.
    fn widen_to_f64<A: Arch, const N: usize>(arch: A, elements: &[Self; N]) -> [f64; N];
    /// The nearest values of the format, rounded once.
    fn narrow_from_f64<A: Arch, const N: usize>(arch: A, precise: &[f64; N]) -> [Self; N];
}

/// What formats for sums can do. Integers wrap around.
pub trait Accumulate: Copy {
    /// Their sum.
    fn add(self, other: Self) -> Self;
    /// Their product.
    fn multiply(self, other: Self) -> Self;
}

/// What formats for sums of floats can do.
pub trait Real: Accumulate {
    /// The nearest value.
    fn from_f64(value: f64) -> Self;
    /// The quotient.
    fn divide(self, divisor: Self) -> Self;
}

macro_rules! native_float {
    ($($type:ident, $canonical:ident;)*) => {$(
        impl Number for $type {
            type Wide = Self;

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                $canonical(wide)
            }

            #[inline(always)]
            fn widen_block<A: Arch, const N: usize>(_arch: A, elements: &[Self; N]) -> [Self; N] {
                *elements
            }

            #[inline(always)]
            fn narrow_block<A: Arch, const N: usize>(_arch: A, wide: &[Self; N]) -> [Self; N] {
                each(wide, Self::narrow)
            }

            #[inline(always)]
            fn canonical(self) -> Self {
                $canonical(self)
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                // Neither is smaller: then they differ at most in the sign of a zero, or one is NaN and stays NaN
                // whatever other bits are set in it.
                let neither = Self::from_bits(self.to_bits() | other.to_bits());
                let not_other = if self < other { self } else { neither };
                if other < self { other } else { not_other }
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                -(-self).smaller(-other)
            }
        }

        impl Precise for $type {
            #[inline(always)]
            fn widen_to_f64<A: Arch, const N: usize>(_arch: A, elements: &[Self; N]) -> [f64; N] {
                each(elements, f64::from)
            }

            #[inline(always)]
            fn narrow_from_f64<A: Arch, const N: usize>(_arch: A, precise: &[f64; N]) -> [Self; N] {
                each(precise, |value| $canonical(value as $type))
            }
        }

        impl Accumulate for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                self * other
            }
        }

        impl Real for $type {
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }

            #[inline(always)]
            fn divide(self, divisor: Self) -> Self {
                self / divisor
            }
        }
    )*};
}

native_float! {
    f32, canonical_f32;
    f64, canonical_f64;
}

macro_rules! small_float {
    ($($type:ident: $signed:ident, $unsigned:ident, |$arch:ident, $block:ident| $widen:expr, $narrow:expr;)*) => {$(
        const _: () = {
            /// The last number, without its sign.
            const LAST: $signed = <$type as Small>::LAST_NUMBER as $signed;

            /// An integer that sorts as the value does, -0 below +0. A NaN becomes `nan`.
            #[inline(always)]
            fn key(value: $type, nan: $signed) -> $signed {
                let key = flip_if_negative(value.to_bits() as $signed);
                if (!LAST..=LAST).contains(&key) { key } else { nan }
            }

            /// The value of a key.
            #[inline(always)]
            fn value(key: $signed) -> $type {
                <$type>::from_bits(flip_if_negative(key) as $unsigned)
            }

            #[inline(always)]
            fn flip_if_negative(bits: $signed) -> $signed {
                bits ^ ((bits >> ($signed::BITS - 1)) & $signed::MAX)
            }

            impl Number for $type {
                type Wide = f32;

                #[inline(always)]
                fn widen(self) -> f32 {
                    float::widen(self)
                }

                #[inline(always)]
                fn narrow(wide: f32) -> Self {
                    float::narrow(wide)
                }

                #[inline(always)]
                fn widen_block<A: Arch, const N: usize>($arch: A, $block: &[Self; N]) -> [f32; N] {
                    $widen
                }

                #[inline(always)]
                fn narrow_block<A: Arch, const N: usize>($arch: A, $block: &[f32; N]) -> [Self; N] {
                    $narrow
                }

                #[inline(always)]
                fn canonical(self) -> Self {
                    let is_nan = self.to_bits() as $signed & $signed::MAX > LAST;
                    if is_nan { Self::from_bits(<Self as Small>::NAN as $unsigned) } else { self }
                }

                #[inline(always)]
                fn smaller(self, other: Self) -> Self {
                    value(key(self, $signed::MIN).min(key(other, $signed::MIN)))
                }

                #[inline(always)]
                fn larger(self, other: Self) -> Self {
                    value(key(self, $signed::MAX).max(key(other, $signed::MAX)))
                }
            }

            impl Precise for $type {
                #[inline(always)]
                fn widen_to_f64<A: Arch, const N: usize>(arch: A, elements: &[Self; N]) -> [f64; N] {
                    each(&Self::widen_block(arch, elements), f64::from)
                }

                #[inline(always)]
                fn narrow_from_f64<A: Arch, const N: usize>(arch: A, precise: &[f64; N]) -> [Self; N] {
                    Self::narrow_block(arch, &each(precise, round_to_odd))
                }
            }
        };
    )*};
}

small_float! {
    bf16: i16, u16, |arch, block| arch.widen_bf16(block), arch.narrow_bf16(block);
    f16: i16, u16, |arch, block| arch.widen_f16(block), arch.narrow_f16(block);
    F8E4m3: i8, u8, |arch, block| arch.widen_f8e4m3(block), arch.narrow_f8e4m3(block);
    F8E5m2: i8, u8, |arch, block| arch.widen_f8e5m2(block), arch.narrow_f8e5m2(block);
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Number for $type {
            type Wide = Self;

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(wide: Self) -> Self {
                wide
            }

            #[inline(always)]
            fn widen_block<A: Arch, const N: usize>(_arch: A, elements: &[Self; N]) -> [Self; N] {
                *elements
            }

            #[inline(always)]
            fn narrow_block<A: Arch, const N: usize>(_arch: A, wide: &[Self; N]) -> [Self; N] {
                *wide
            }

            #[inline(always)]
            fn canonical(self) -> Self {
                self
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
        }

        impl Accumulate for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

integer!(i8, i16, i32, i64, u8, u16, u32, u64);
