//! Rounding between float formats, branch-free and by integer arithmetic, so that every processor gives the
//! same bits and the compiler can vectorise it.
//!
//! Rounding is to nearest, ties to even. Every NaN becomes the format's canonical quiet NaN.

use crate::{F8E4m3, F8E5m2};
use half::{bf16, f16};

/// The canonical quiet NaN of `f32`.
pub(crate) const NAN_F32: f32 = f32::from_bits(0x7fc0_0000);
/// The canonical quiet NaN of `f64`.
pub(crate) const NAN_F64: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

/// A format of at most 16 bits, one of them the sign. All constants are bit patterns without the sign.
pub(crate) trait Small: Copy {
    /// Bits of the exponent.
    const EXPONENT: u32;
    /// Bits of the mantissa, the implied one left out.
    const MANTISSA: u32;
    /// The largest finite value.
    const LARGEST: u32;
    /// What larger values become: infinity, or NaN in a format without infinities.
    const OVERFLOW: u32;
    /// The canonical NaN.
    const NAN: u32;

    /// The last bit pattern that is a number: infinity where there is one.
    const LAST_NUMBER: u32 = if Self::OVERFLOW == Self::NAN { Self::LARGEST } else { Self::OVERFLOW };

    /// The value with these bits; the upper ones are ignored.
    fn from_low_bits(bits: u32) -> Self;
    /// Its bits, zero-extended.
    fn low_bits(self) -> u32;
}

/// Derived constants of a format.
struct Shape<S>(S);

impl<S: Small> Shape<S> {
    const SIGN_SHIFT: u32 = S::EXPONENT + S::MANTISSA;
    const MAGNITUDE: u32 = (1 << Self::SIGN_SHIFT) - 1;
    /// Mantissa bits that `f32` has more.
    const EXTRA: u32 = 23 - S::MANTISSA;
    /// What is added, plus one if the result would be odd, before those bits are cut off.
    const HALF_BELOW: u32 = (1 << (Self::EXTRA - 1)) - 1;
    /// Difference of the exponent biases.
    const REBIAS: u32 = 127 - ((1 << (S::EXPONENT - 1)) - 1);
    /// The smallest normal value, as the bits of an `f32`.
    const SMALLEST_NORMAL: u32 = (Self::REBIAS + 1) << 23;
    /// An `f32` power of two whose last mantissa bit weighs as much as the format's smallest subnormal.
    const SUBNORMAL_MAGIC: f32 = f32::from_bits((Self::REBIAS + 1 + Self::EXTRA) << 23);
    /// Two to the power of [`REBIAS`](Self::REBIAS).
    const UPSCALE: f32 = f32::from_bits((127 + Self::REBIAS) << 23);
}

/// Rounds to the nearest value of the format.
#[inline(always)]
pub(crate) fn narrow<S: Small>(value: f32) -> S {
    let bits = value.to_bits();
    if Shape::<S>::REBIAS == 0 {
        // With the exponent of `f32` the sign may stay where it is, and a carry makes infinity by itself.
        let even = (bits >> Shape::<S>::EXTRA) & 1;
        let rounded = bits.wrapping_add(Shape::<S>::HALF_BELOW + even) >> Shape::<S>::EXTRA;
        return S::from_low_bits(if value.is_nan() { S::NAN } else { rounded });
    }
    let sign = (bits >> 31) << Shape::<S>::SIGN_SHIFT;
    let rounded = round_magnitude::<S>(bits & 0x7fff_ffff);
    let fitted = if rounded > S::LARGEST as i32 { S::OVERFLOW } else { rounded as u32 };
    // A format without infinities has NaN as its overflow: both must be the canonical one.
    let fitted = if fitted == S::NAN { S::NAN } else { sign | fitted };
    S::from_low_bits(if value.is_nan() { S::NAN } else { fitted })
}

/// Rounds to the nearest finite value of the format: what is too large, infinities included, becomes the largest.
#[inline(always)]
pub(crate) fn narrow_saturating<S: Small>(value: f32) -> S {
    let bits = value.to_bits();
    let sign = (bits >> 31) << Shape::<S>::SIGN_SHIFT;
    let rounded = round_magnitude::<S>(bits & 0x7fff_ffff);
    let fitted = sign | (rounded.min(S::LARGEST as i32) as u32);
    S::from_low_bits(if value.is_nan() { S::NAN } else { fitted })
}

/// Rounds the magnitude of an `f32` as if the format's exponent had no end. All values fit `i32`, whose
/// comparisons every vector unit has.
#[inline(always)]
fn round_magnitude<S: Small>(magnitude: u32) -> i32 {
    let extra = Shape::<S>::EXTRA;
    let even = (magnitude >> extra) & 1;
    let normal =
        magnitude.wrapping_sub(Shape::<S>::REBIAS << 23).wrapping_add(Shape::<S>::HALF_BELOW + even) >> extra;
    // Adding a number of the right size lets the float adder round a subnormal at the right bit.
    let magic = Shape::<S>::SUBNORMAL_MAGIC;
    let subnormal = (f32::from_bits(magnitude) + magic).to_bits().wrapping_sub(magic.to_bits());
    if (magnitude as i32) < Shape::<S>::SMALLEST_NORMAL as i32 { subnormal as i32 } else { normal as i32 }
}

/// The same value in `f32`: exact. A NaN may keep its payload.
#[inline(always)]
pub(crate) fn widen<S: Small>(value: S) -> f32 {
    let bits = value.low_bits();
    let sign = (bits >> Shape::<S>::SIGN_SHIFT) << 31;
    let magnitude = bits & Shape::<S>::MAGNITUDE;
    let shifted = magnitude << Shape::<S>::EXTRA;
    if Shape::<S>::REBIAS == 0 {
        return f32::from_bits(sign | shifted);
    }
    let finite = (f32::from_bits(shifted) * Shape::<S>::UPSCALE).to_bits();
    let special = if magnitude > S::LAST_NUMBER { NAN_F32.to_bits() } else { f32::INFINITY.to_bits() };
    f32::from_bits(sign | if magnitude > S::LARGEST { special } else { finite })
}

/// Rounds to odd: what is not exact gets an odd last bit, so that rounding the result once more to a much shorter
/// format gives what rounding once would have given.
#[inline(always)]
pub(crate) fn round_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    let toward_zero = if back.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    // Equal, or NaN, in which case nothing is to be done.
    let exact = back == value || value.is_nan();
    f32::from_bits(if exact { bits } else { toward_zero | 1 })
}

/// Replaces any NaN by the canonical one.
#[inline(always)]
pub(crate) fn canonical_f32(value: f32) -> f32 {
    if value.is_nan() { NAN_F32 } else { value }
}

/// Replaces any NaN by the canonical one.
#[inline(always)]
pub(crate) fn canonical_f64(value: f64) -> f64 {
    if value.is_nan() { NAN_F64 } else { value }
}

macro_rules! small {
    ($($type:ty: $bits:ty, $exponent:literal, $mantissa:literal, $largest:literal, $overflow:literal, $nan:literal;)*) => {$(
        impl Small for $type {
            const EXPONENT: u32 = $exponent;
            const MANTISSA: u32 = $mantissa;
            const LARGEST: u32 = $largest;
            const OVERFLOW: u32 = $overflow;
            const NAN: u32 = $nan;

            #[inline(always)]
            fn from_low_bits(bits: u32) -> Self {
                Self::from_bits(bits as $bits)
            }

            #[inline(always)]
            fn low_bits(self) -> u32 {
                u32::from(self.to_bits())
            }
        }
    )*};
}

small! {
    bf16: u16, 8, 7, 0x7f7f, 0x7f80, 0x7fc0;
    f16: u16, 5, 10, 0x7bff, 0x7c00, 0x7e00;
    F8E5m2: u8, 5, 2, 0x7b, 0x7c, 0x7e;
    F8E4m3: u8, 4, 3, 0x7e, 0x7f, 0x7f;
}
