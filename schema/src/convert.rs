//! From the format in memory to the format on the wire, and back.

use crate::float::{self, canonical_f32, canonical_f64};
use crate::{Element, F8E4m3, F8E5m2};
use half::{bf16, f16};

/// Values of this format can travel as `W`.
///
/// Conversions round to nearest, ties to even. What is too large becomes infinity, or NaN in f8e4m3, which has no
/// infinities. Every NaN becomes the canonical quiet NaN of the destination, except where the formats are the same:
/// then the bits are copied.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel as `{W}`",
    note = "f64 and f32 can travel as f64, f32, bf16, f16, f8e4m3 or f8e5m2; all others only as themselves"
)]
pub trait ConvertTo<W: Element>: Element {
    /// Converts each element; floats round to nearest even. Both slices have the same length.
    fn convert_to(source: &[Self], destination: &mut [W]);
    /// Converts each element back. Both slices have the same length.
    fn convert_from(source: &[W], destination: &mut [Self]);
}

impl<T: Element> ConvertTo<T> for T {
    fn convert_to(source: &[Self], destination: &mut [T]) {
        map(source, destination, |value| value);
    }

    fn convert_from(source: &[T], destination: &mut [Self]) {
        map(source, destination, |value| value);
    }
}

macro_rules! convert {
    ($($memory:ty => $wire:ty: $to:expr, $from:expr;)*) => {$(
        impl ConvertTo<$wire> for $memory {
            fn convert_to(source: &[Self], destination: &mut [$wire]) {
                map(source, destination, $to);
            }

            fn convert_from(source: &[$wire], destination: &mut [Self]) {
                map(source, destination, $from);
            }
        }
    )*};
}

convert! {
    f64 => f32: |value| canonical_f32(value as f32), |value| canonical_f64(f64::from(value));
    f64 => bf16: narrow_f64, widen_f64;
    f64 => f16: narrow_f64, widen_f64;
    f64 => F8E4m3: narrow_f64, widen_f64;
    f64 => F8E5m2: narrow_f64, widen_f64;
    f32 => f64: |value| canonical_f64(f64::from(value)), |value| canonical_f32(value as f32);
    f32 => bf16: float::narrow, widen_f32;
    f32 => f16: float::narrow, widen_f32;
    f32 => F8E4m3: float::narrow, widen_f32;
    f32 => F8E5m2: float::narrow, widen_f32;
}

#[inline(always)]
fn narrow_f64<S: float::Small>(value: f64) -> S {
    float::narrow(float::round_to_odd(value))
}

#[inline(always)]
fn widen_f64<S: float::Small>(value: S) -> f64 {
    canonical_f64(f64::from(float::widen(value)))
}

#[inline(always)]
fn widen_f32<S: float::Small>(value: S) -> f32 {
    canonical_f32(float::widen(value))
}

#[inline(always)]
fn map<A: Copy, B>(source: &[A], destination: &mut [B], convert: impl Fn(A) -> B) {
    for (destination, source) in destination.iter_mut().zip(source) {
        *destination = convert(*source);
    }
}
