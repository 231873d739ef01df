//! AVX2 and AVX-512.

mod f8;

use super::{Arch, Task};
use crate::float::{self, NAN_F32};
use crate::{F8E4m3, F8E5m2};
use half::{bf16, f16};
use std::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm256_add_epi32, _mm256_and_si256,
    _mm256_blendv_epi8, _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmp_ps,
    _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_packus_epi32, _mm256_permute4x64_epi64,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_slli_epi32, _mm256_srli_epi32,
};
use zerocopy::transmute;

/// AVX2 and F16C: x86-64-v3, as far as the loops use it. A value proves that this processor has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// AVX-512: x86-64-v4, as far as the loops use it. A value proves that this processor has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(Avx2);

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
        has_all.then_some(Self(()))
    }

    #[inline]
    pub(super) fn run(self, task: impl Task) {
        #[target_feature(enable = "avx2,f16c")]
        fn compiled(avx2: Avx2, task: impl Task) {
            task.run(avx2);
        }
        // SAFETY: `self` proves that the processor has the features.
        unsafe { compiled(self, task) }
    }
}

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let has_all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        Avx2::detect().filter(|_| has_all).map(Self)
    }

    #[inline]
    pub(super) fn run(self, task: impl Task) {
        #[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
        fn compiled(avx512: Avx512, task: impl Task) {
            task.run(avx512);
        }
        // SAFETY: `self` proves that the processor has the features.
        unsafe { compiled(self, task) }
    }
}

impl Arch for Avx2 {
    #[inline(always)]
    fn widen_bf16<const N: usize>(self, elements: &[bf16; N]) -> [f32; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(elements, |chunk| unsafe { widen_bf16(chunk) }, float::widen)
    }

    #[inline(always)]
    fn narrow_bf16<const N: usize>(self, wide: &[f32; N]) -> [bf16; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(wide, |chunk| unsafe { narrow_bf16(chunk) }, float::narrow)
    }

    #[inline(always)]
    fn widen_f16<const N: usize>(self, elements: &[f16; N]) -> [f32; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(elements, |chunk| unsafe { widen_f16(chunk) }, float::widen)
    }

    #[inline(always)]
    fn narrow_f16<const N: usize>(self, wide: &[f32; N]) -> [f16; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(wide, |chunk| unsafe { narrow_f16(chunk) }, float::narrow)
    }

    #[inline(always)]
    fn widen_f8e4m3<const N: usize>(self, elements: &[F8E4m3; N]) -> [f32; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(elements, |chunk| unsafe { f8::widen_f8e4m3(chunk) }, float::widen)
    }

    #[inline(always)]
    fn narrow_f8e4m3<const N: usize>(self, wide: &[f32; N]) -> [F8E4m3; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(wide, |chunk| unsafe { f8::narrow_f8e4m3(chunk) }, float::narrow)
    }

    #[inline(always)]
    fn widen_f8e5m2<const N: usize>(self, elements: &[F8E5m2; N]) -> [f32; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(elements, |chunk| unsafe { f8::widen_f8e5m2(chunk) }, float::widen)
    }

    #[inline(always)]
    fn narrow_f8e5m2<const N: usize>(self, wide: &[f32; N]) -> [F8E5m2; N] {
        // SAFETY: `self` proves that the processor has the features.
        in_chunks(wide, |chunk| unsafe { f8::narrow_f8e5m2(chunk) }, float::narrow)
    }
}

// The conversions of AVX2 are as good here: what they read and write is at most half as wide.
impl Arch for Avx512 {
    #[inline(always)]
    fn widen_bf16<const N: usize>(self, elements: &[bf16; N]) -> [f32; N] {
        self.0.widen_bf16(elements)
    }

    #[inline(always)]
    fn narrow_bf16<const N: usize>(self, wide: &[f32; N]) -> [bf16; N] {
        self.0.narrow_bf16(wide)
    }

    #[inline(always)]
    fn widen_f16<const N: usize>(self, elements: &[f16; N]) -> [f32; N] {
        self.0.widen_f16(elements)
    }

    #[inline(always)]
    fn narrow_f16<const N: usize>(self, wide: &[f32; N]) -> [f16; N] {
        self.0.narrow_f16(wide)
    }

    #[inline(always)]
    fn widen_f8e4m3<const N: usize>(self, elements: &[F8E4m3; N]) -> [f32; N] {
        self.0.widen_f8e4m3(elements)
    }

    #[inline(always)]
    fn narrow_f8e4m3<const N: usize>(self, wide: &[f32; N]) -> [F8E4m3; N] {
        self.0.narrow_f8e4m3(wide)
    }

    #[inline(always)]
    fn widen_f8e5m2<const N: usize>(self, elements: &[F8E5m2; N]) -> [f32; N] {
        self.0.widen_f8e5m2(elements)
    }

    #[inline(always)]
    fn narrow_f8e5m2<const N: usize>(self, wide: &[f32; N]) -> [F8E5m2; N] {
        self.0.narrow_f8e5m2(wide)
    }
}

/// Converts chunks of `C` elements by `convert`, and what is left one by one.
#[inline(always)]
fn in_chunks<S: Copy, D: Copy + Default, const C: usize, const N: usize>(
    source: &[S; N],
    convert: impl Fn([S; C]) -> [D; C],
    convert_one: impl Fn(S) -> D,
) -> [D; N] {
    let mut destination = [D::default(); N];
    let (source_chunks, source_rest) = source.as_chunks::<C>();
    let (destination_chunks, destination_rest) = destination.as_chunks_mut::<C>();
    for (destination, source) in destination_chunks.iter_mut().zip(source_chunks) {
        *destination = convert(*source);
    }
    for (destination, source) in destination_rest.iter_mut().zip(source_rest) {
        *destination = convert_one(*source);
    }
    destination
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_bf16(elements: [bf16; 8]) -> [f32; 8] {
    let bits: __m128i = transmute!(elements);
    let shifted = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits));
    transmute!(_mm256_castsi256_ps(shifted))
}

#[inline]
#[target_feature(enable = "avx2")]
fn narrow_bf16(wide: [f32; 16]) -> [bf16; 16] {
    let [low, high]: [__m256; 2] = transmute!(wide);
    // Packing works within each half of a register; the permutation puts the quarters in order.
    let packed = _mm256_packus_epi32(round_to_bf16(low), round_to_bf16(high));
    transmute!(_mm256_permute4x64_epi64::<0b11_01_10_00>(packed))
}

/// The bits of the nearest bf16, in the lower half of each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn round_to_bf16(wide: __m256) -> __m256i {
    let bits = _mm256_castps_si256(wide);
    let even = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let half_below = _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff));
    let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, half_below));
    let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(wide, wide));
    _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), is_nan)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen_f16(elements: [f16; 8]) -> [f32; 8] {
    transmute!(_mm256_cvtph_ps(transmute!(elements)))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn narrow_f16(wide: [f32; 8]) -> [f16; 8] {
    let wide: __m256 = transmute!(wide);
    // The instruction would keep the payload of a NaN.
    let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(wide, wide);
    let canonical = _mm256_blendv_ps(wide, _mm256_set1_ps(NAN_F32), is_nan);
    transmute!(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(canonical))
}
