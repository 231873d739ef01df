//! CRC32C by the instruction of SSE4.2.

use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};

/// The next state, if this processor has the instruction.
#[inline]
pub(super) fn update(state: u32, bytes: &[u8]) -> Option<u32> {
    if !is_x86_feature_detected!("sse4.2") {
        return None;
    }
    // SAFETY: the only precondition is that the processor has SSE4.2, which was asked just above.
    Some(unsafe { update_sse42(state, bytes) })
}

#[target_feature(enable = "sse4.2")]
fn update_sse42(state: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let state =
        words.iter().fold(u64::from(state), |state, word| _mm_crc32_u64(state, u64::from_le_bytes(*word)));
    // The instruction leaves the upper half zero.
    let (words, rest) = rest.as_chunks::<4>();
    let state =
        words.iter().fold(state as u32, |state, word| _mm_crc32_u32(state, u32::from_le_bytes(*word)));
    rest.iter().fold(state, |state, byte| _mm_crc32_u8(state, *byte))
}
