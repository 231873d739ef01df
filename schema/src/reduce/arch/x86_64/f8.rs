//! The 8-bit floats, by way of f16: its conversions to and from f32 are instructions.
//!
//! An f8e5m2 is the upper half of an f16. An f8e4m3 has its mantissa three bits further left in one and an exponent that
//! is 8 larger than it should be, that is 256 times its value.

use crate::float::NAN_F32;
use crate::{F8E4m3, F8E5m2};
use std::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_packus_epi16, _mm256_add_epi32,
    _mm256_add_ps, _mm256_and_ps, _mm256_and_si256, _mm256_andnot_ps, _mm256_andnot_si256, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cmpeq_epi16,
    _mm256_cvtepu8_epi16, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_extracti128_si256, _mm256_max_epi32,
    _mm256_min_epi16, _mm256_min_epi32, _mm256_mul_ps, _mm256_or_ps, _mm256_or_si256, _mm256_set_m128i,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_slli_epi16, _mm256_srai_epi16,
    _mm256_srli_epi16, _mm256_sub_ps, _mm256_xor_si256,
};
use zerocopy::transmute;

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn widen_f8e5m2(elements: [F8E5m2; 16]) -> [f32; 16] {
    let halves = _mm256_slli_epi16::<8>(_mm256_cvtepu8_epi16(transmute!(elements)));
    transmute!(widen_halves(halves))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn widen_f8e4m3(elements: [F8E4m3; 16]) -> [f32; 16] {
    let bits = _mm256_cvtepu8_epi16(transmute!(elements));
    // The shift to the right leaves the sign, and a copy of it in the exponent.
    let shifted = _mm256_srai_epi16::<1>(_mm256_slli_epi16::<8>(bits));
    let halves = _mm256_and_si256(shifted, _mm256_set1_epi16(0xbfff_u16 as i16));
    let magnitude = _mm256_set1_epi16(0x7f);
    let is_nan = _mm256_cmpeq_epi16(_mm256_and_si256(bits, magnitude), magnitude);
    // From what a NaN has become to the NaN of f16.
    let fixed = _mm256_xor_si256(halves, _mm256_and_si256(is_nan, _mm256_set1_epi16(0x3f80 ^ 0x7e00)));
    let [low, high] = widen_halves(fixed);
    let scale = _mm256_set1_ps(256.0);
    transmute!([_mm256_mul_ps(low, scale), _mm256_mul_ps(high, scale)])
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn narrow_f8e5m2(wide: [f32; 16]) -> [F8E5m2; 16] {
    let [low, high]: [__m256; 2] = transmute!(wide);
    // What is too large has become an infinity of f16, which has the bits of that of f8e5m2.
    let halves = narrow_halves(round::<2, -14>(canonical(low)), round::<2, -14>(canonical(high)));
    transmute!(pack(_mm256_srli_epi16::<8>(halves)))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn narrow_f8e4m3(wide: [f32; 16]) -> [F8E4m3; 16] {
    let [low, high]: [__m256; 2] = transmute!(wide);
    let scale = _mm256_set1_ps(1.0 / 256.0);
    let halves =
        narrow_halves(_mm256_mul_ps(round::<3, -6>(low), scale), _mm256_mul_ps(round::<3, -6>(high), scale));
    let sign = _mm256_andnot_si256(_mm256_set1_epi16(0x7f), _mm256_srli_epi16::<8>(halves));
    let magnitude = _mm256_srli_epi16::<7>(_mm256_and_si256(halves, _mm256_set1_epi16(0x7fff)));
    // NaN, infinities and all that is too large have become something larger than the NaN, which has no sign.
    let nan = _mm256_set1_epi16(0x7f);
    let fitted = _mm256_min_epi16(magnitude, nan);
    let sign = _mm256_andnot_si256(_mm256_cmpeq_epi16(fitted, nan), sign);
    transmute!(pack(_mm256_or_si256(sign, fitted)))
}

/// Rounds to `MANTISSA` bits, or fewer below two to the power of `SMALLEST`, ties to even. Infinities and NaN stay.
///
/// The float adder does it: a power of two is added and taken away again, large enough to leave no place for the bits
/// that are too many.
#[inline]
#[target_feature(enable = "avx2")]
fn round<const MANTISSA: i32, const SMALLEST: i32>(wide: __m256) -> __m256 {
    let sign = _mm256_and_ps(wide, _mm256_set1_ps(-0.0));
    let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), wide);
    let infinity = _mm256_set1_ps(f32::INFINITY);
    let exponent = _mm256_castps_si256(_mm256_and_ps(magnitude, infinity));
    let smallest = _mm256_set1_epi32((127 + SMALLEST) << 23);
    // Beyond what f16 can hold nothing needs to be rounded, and the sum must not overflow.
    let largest = _mm256_set1_epi32((127 + 24) << 23);
    let bounded = _mm256_min_epi32(_mm256_max_epi32(exponent, smallest), largest);
    let magic = _mm256_castsi256_ps(_mm256_add_epi32(bounded, _mm256_set1_epi32((23 - MANTISSA) << 23)));
    let rounded = _mm256_sub_ps(_mm256_add_ps(magnitude, magic), magic);
    _mm256_or_ps(rounded, sign)
}

/// Replaces any NaN by the canonical one.
#[inline]
#[target_feature(enable = "avx2")]
fn canonical(wide: __m256) -> __m256 {
    let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(wide, wide);
    _mm256_blendv_ps(wide, _mm256_set1_ps(NAN_F32), is_nan)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen_halves(halves: __m256i) -> [__m256; 2] {
    [_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves))]
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn narrow_halves(low: __m256, high: __m256) -> __m256i {
    let low = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(low);
    let high = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(high);
    _mm256_set_m128i(high, low)
}

/// The lower bytes of all lanes, which hold no more.
#[inline]
#[target_feature(enable = "avx2")]
fn pack(lanes: __m256i) -> __m128i {
    _mm_packus_epi16(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes))
}
