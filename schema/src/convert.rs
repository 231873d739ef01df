//! From the format in memory to the format on the wire, and back.

use crate::float::{Small, canonical_f32, canonical_f64, round_to_odd};
use crate::reduce::arch::{Arch, each};
use crate::reduce::number::Number;
use crate::reduce::slices::{self, Pairwise};
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
        slices::run(destination, source, Keep);
    }

    fn convert_from(source: &[T], destination: &mut [Self]) {
        slices::run(destination, source, Keep);
    }
}

macro_rules! convert {
    ($($memory:ty => $wire:ty, $to:ident, $from:ident;)*) => {$(
        impl ConvertTo<$wire> for $memory {
            fn convert_to(source: &[Self], destination: &mut [$wire]) {
                slices::run(destination, source, $to);
            }

            fn convert_from(source: &[$wire], destination: &mut [Self]) {
                slices::run(destination, source, $from);
            }
        }
    )*};
}

convert! {
    f64 => f32, Narrow, Widen;
    f64 => bf16, Narrow, Widen;
    f64 => f16, Narrow, Widen;
    f64 => F8E4m3, Narrow, Widen;
    f64 => F8E5m2, Narrow, Widen;
    f32 => f64, Widen, Narrow;
    f32 => bf16, Narrow, Widen;
    f32 => f16, Narrow, Widen;
    f32 => F8E4m3, Narrow, Widen;
    f32 => F8E5m2, Narrow, Widen;
}

/// The same bits.
#[derive(Clone, Copy)]
struct Keep;

/// To a format with fewer bits.
#[derive(Clone, Copy)]
struct Narrow;

/// To a format with more bits.
#[derive(Clone, Copy)]
struct Widen;

impl<T: Copy> Pairwise<T, T> for Keep {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, _arch: A, destination: &mut [T; N], source: &[T; N]) {
        *destination = *source;
    }
}

impl Pairwise<f32, f64> for Narrow {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, _arch: A, destination: &mut [f32; N], source: &[f64; N]) {
        *destination = each(source, |value| canonical_f32(value as f32));
    }
}

impl<S: Small + Number<Wide = f32>> Pairwise<S, f32> for Narrow {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, arch: A, destination: &mut [S; N], source: &[f32; N]) {
        *destination = S::narrow_block(arch, source);
    }
}

impl<S: Small + Number<Wide = f32>> Pairwise<S, f64> for Narrow {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, arch: A, destination: &mut [S; N], source: &[f64; N]) {
        *destination = S::narrow_block(arch, &each(source, round_to_odd));
    }
}

impl Pairwise<f64, f32> for Widen {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, _arch: A, destination: &mut [f64; N], source: &[f32; N]) {
        *destination = each(source, |value| canonical_f64(value.into()));
    }
}

impl<S: Small + Number<Wide = f32>> Pairwise<f32, S> for Widen {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, arch: A, destination: &mut [f32; N], source: &[S; N]) {
        *destination = each(&S::widen_block(arch, source), canonical_f32);
    }
}

impl<S: Small + Number<Wide = f32>> Pairwise<f64, S> for Widen {
    #[inline(always)]
    fn block<A: Arch, const N: usize>(self, arch: A, destination: &mut [f64; N], source: &[S; N]) {
        *destination = each(&S::widen_block(arch, source), |value| canonical_f64(value.into()));
    }
}
