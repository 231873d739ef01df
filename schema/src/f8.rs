//! The two 8-bit float formats of the Open Compute Project's FP8 specification (OFP8).

use crate::float;
use std::cmp::Ordering;
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An 8-bit float: sign, 4 exponent bits (bias 7), 3 mantissa bits. Largest value 448, smallest normal 2⁻⁶,
/// smallest subnormal 2⁻⁹. It has no infinities; NaN is `0x7f` (canonical) and `0xff`.
///
/// ```
/// use gradwire_schema::F8E4m3;
/// assert_eq!(F8E4m3::from_f32(300.0).to_f32(), 288.0);
/// assert!(F8E4m3::from_f32(1000.0).is_nan());
/// assert_eq!(F8E4m3::saturating_from_f32(1000.0).to_f32(), 448.0);
/// ```
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct F8E4m3(u8);

/// An 8-bit float: sign, 5 exponent bits (bias 15), 2 mantissa bits. Largest value 57344, smallest normal 2⁻¹⁴,
/// smallest subnormal 2⁻¹⁶. Infinity is `0x7c`, the canonical NaN `0x7e`.
///
/// ```
/// use gradwire_schema::F8E5m2;
/// assert_eq!(F8E5m2::from_f32(0.3).to_f32(), 0.3125);
/// assert_eq!(F8E5m2::from_f32(1e6).to_f32(), f32::INFINITY);
/// assert_eq!(F8E5m2::saturating_from_f32(1e6).to_f32(), 57344.0);
/// ```
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct F8E5m2(u8);

macro_rules! f8 {
    ($type:ident) => {
        impl $type {
            /// Rounds to the nearest value, ties to even.
            ///
            /// A magnitude that rounds beyond the largest value does not saturate: it becomes infinity, or NaN in
            /// the format without infinities, so that an overflow shows. Use
            /// [`saturating_from_f32`](Self::saturating_from_f32) to clamp instead.
            #[must_use]
            pub fn from_f32(value: f32) -> Self {
                float::narrow(value)
            }

            /// Rounds to the nearest finite value, ties to even: infinities and all that is too large become the
            /// largest value of their sign. NaN stays NaN.
            #[must_use]
            pub fn saturating_from_f32(value: f32) -> Self {
                float::narrow_saturating(value)
            }

            /// The same value, exactly.
            #[must_use]
            pub fn to_f32(self) -> f32 {
                float::widen(self)
            }

            /// The value with these bits.
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// Its bits.
            #[must_use]
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// Whether it is not a number.
            #[must_use]
            pub const fn is_nan(self) -> bool {
                (self.0 & 0x7f) as u32 > <Self as float::Small>::LAST_NUMBER
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), formatter)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), formatter)
            }
        }

        impl From<$type> for f32 {
            fn from(value: $type) -> Self {
                value.to_f32()
            }
        }
    };
}

f8!(F8E4m3);
f8!(F8E5m2);
