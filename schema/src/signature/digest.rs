//! Mixing words into 64 bits.

/// The digest of a struct's layout: the fingerprint of its type and every length that is known at run time only.
///
/// ```
/// # use gradwire_schema::LayoutDigest;
/// let digest = LayoutDigest::new(0x1234).length(10).length(64).finish();
/// assert_ne!(digest, LayoutDigest::new(0x1234).length(64).length(10).finish());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct LayoutDigest {
    state: u64,
    lengths: u64,
}

impl LayoutDigest {
    /// The digest of a struct with this fingerprint and no length yet.
    pub const fn new(fingerprint: u64) -> Self {
        Self { state: step(SEED, fingerprint), lengths: 0 }
    }

    /// Adds the next run-time length, in items, in layout order.
    pub const fn length(self, length: u64) -> Self {
        Self { state: step(self.state, length), lengths: self.lengths + 1 }
    }

    /// The digest; never 0, which means "no layout".
    #[must_use]
    pub const fn finish(self) -> u64 {
        match scramble(step(self.state, self.lengths)) {
            0 => 1,
            digest => digest,
        }
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Odd, so that multiplying by it loses nothing; its powers tell the places of equal words apart.
const FACTOR: u64 = 0x6a09_e667_f3bc_c909;

/// The hash of some words. Each step is a bijection of each of its inputs: a change of a single word always changes
/// the result.
#[inline]
pub(super) fn hash_words(words: [u64; 5]) -> u64 {
    scramble(words.into_iter().fold(SEED, step))
}

#[inline]
const fn step(state: u64, word: u64) -> u64 {
    state.wrapping_mul(FACTOR).wrapping_add(scramble(word))
}

/// A bijection in which every bit of the input changes about half of the output: the finalizer of SplitMix64 (Steele,
/// Lea, Flood: Fast splittable pseudorandom number generators, 2014; constants by Stafford, variant 13).
#[inline]
const fn scramble(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
