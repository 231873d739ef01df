//! Sums of floats in which neither the order nor the grouping of the contributions shows.
//!
//! The line of all f64, from 2⁻¹⁰⁷⁴ up, is cut into bins of 32 bits, at places that depend on nothing. A number is an
//! integer spread over at most three neighbouring bins. A partial sum keeps the three bins from the highest that any
//! of its contributions reaches, as integers with 31 bits to spare; what lies below them is cut off each contribution.
//! Integers add up exactly in any order, and which bins are kept depends on the largest contribution alone: a
//! bin that is dropped late holds nothing but what would not have been entered otherwise.
//!
//! The bins are those of Demmel, Ahrens and Nguyen, "Efficient Reproducible Floating Point Summation and BLAS" (UC
//! Berkeley, EECS-2016-121, 2016), with the integers of Neal, "Fast Exact Summation Using Small and Large
//! Superaccumulators" (arXiv 1505.05571, 2015), in place of their floats.

#![forbid(unsafe_code)]

use crate::Equivalence;
use crate::equivalence::InvalidValue;
use crate::layout::Fingerprint;
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A partial result of [`ReproducibleSum`](crate::operation::ReproducibleSum) and
/// [`ReproducibleAverage`](crate::operation::ReproducibleAverage): of any number of contributions, none included.
#[derive(Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct PartialSum {
    /// The sums of what the contributions have in three bins, the highest first.
    bins: [i64; 3],
    /// The number of the highest bin.
    highest: u16,
    /// What is no number, and [`NOT_NEGATIVE_ZERO`].
    seen: u16,
    contributions: u32,
}

const NAN: u16 = 1;
const INFINITY: u16 = 2;
const NEGATIVE_INFINITY: u16 = 4;
/// Anything but -0: only of -0 alone the sum is -0.
const NOT_NEGATIVE_ZERO: u16 = 8;

/// Bits of the significand that are stored.
const SIGNIFICAND: u32 = 52;
const EXPONENTS: u64 = 0x7ff;
/// As many contributions cannot overflow a bin.
const MOST: u32 = 1 << 31;

impl PartialSum {
    /// How many contributions it is of.
    #[must_use]
    pub const fn contributions(&self) -> u32 {
        self.contributions
    }

    /// The sum of one contribution.
    #[inline(always)]
    pub(crate) fn of(value: f64) -> Self {
        let bits = value.to_bits();
        let exponent = bits >> SIGNIFICAND & EXPONENTS;
        let fraction = bits & ((1 << SIGNIFICAND) - 1);
        let negative = (bits as i64) >> 63;
        let finite = exponent != EXPONENTS;
        // The integer `significand << place`, in units of the smallest f64.
        let significand = if finite { fraction | u64::from(exponent != 0) << SIGNIFICAND } else { 0 };
        let place = if finite { exponent.max(1) - 1 } else { 0 };
        let highest = (place + u64::from(SIGNIFICAND)) / 32;
        // From 12 to 43: where the lowest of the three bins begins, seen from the significand.
        let shift = place + 64 - 32 * highest;
        let low = significand << shift;
        let bins = [significand >> (64 - shift), low >> 32, low & 0xffff_ffff];
        let special = match (fraction != 0, negative == 0) {
            (true, _) => NAN,
            (false, true) => INFINITY,
            (false, false) => NEGATIVE_INFINITY,
        };
        let ordinary = if bits == 1 << 63 { 0 } else { NOT_NEGATIVE_ZERO };
        Self {
            // The two's complement.
            bins: bins.map(|bin| (bin as i64 ^ negative) - negative),
            highest: highest as u16,
            seen: ordinary | if finite { 0 } else { special },
            contributions: 1,
        }
    }

    /// The sum of all contributions of both.
    #[inline(always)]
    pub(crate) fn merge(self, other: Self) -> Self {
        let highest = self.highest.max(other.highest);
        let (left, right) = (self.bins_from(highest), other.bins_from(highest));
        Self {
            // A peer's may hold anything.
            bins: [0, 1, 2].map(|bin| left[bin].wrapping_add(right[bin])),
            highest,
            seen: self.seen | other.seen,
            contributions: self.contributions.saturating_add(other.contributions),
        }
    }

    /// What is in the three bins from `highest` down, which is no lower than its own.
    #[inline(always)]
    fn bins_from(&self, highest: u16) -> [i64; 3] {
        let [first, second, third] = self.bins;
        let dropped = highest - self.highest;
        let keep = |bin: i64, from: u16| if dropped == from { bin } else { 0 };
        [keep(first, 0), keep(second, 0) | keep(first, 1), keep(third, 0) | keep(second, 1) | keep(first, 2)]
    }

    /// The nearest f64, of two equally near ones the even.
    #[inline]
    pub(crate) fn nearest(&self) -> f64 {
        self.rounded(|kept, rest, half| kept + u128::from(rest > half || (rest == half && kept % 2 == 1)))
    }

    /// The f64 that is nearest to 0 of the two around the sum, with the last bit set unless it is the sum itself: rounded
    /// to f32 it becomes what the sum itself would.
    #[inline]
    pub(crate) fn odd(&self) -> f64 {
        self.rounded(|kept, rest, _| kept | u128::from(rest != 0))
    }

    /// The average as f64, rounded twice.
    #[inline]
    pub(crate) fn average(&self) -> f64 {
        self.nearest() / f64::from(self.contributions.max(1))
    }

    /// `round` is given the bits that fit, the others, and half of a unit of those that fit.
    #[inline(always)]
    fn rounded(&self, round: impl FnOnce(u128, u128, u128) -> u128) -> f64 {
        if self.seen & (NAN | INFINITY | NEGATIVE_INFINITY) != 0 || self.contributions > MOST {
            return self.special();
        }
        let [high, middle, low] = self.bins.map(i128::from);
        let sum = high.wrapping_mul(1 << 64).wrapping_add(middle << 32).wrapping_add(low);
        if sum == 0 {
            let negative = self.contributions > 0 && self.seen & NOT_NEGATIVE_ZERO == 0;
            return if negative { -0.0 } else { 0.0 };
        }
        let magnitude = sum.unsigned_abs();
        // The place of the lowest bin. Below 0 there are no bits.
        let place = 32 * i32::from(self.highest) - 64;
        let excess = 128 - magnitude.leading_zeros() as i32 - (SIGNIFICAND as i32 + 1);
        let cut = excess.max(-place).max(0) as u32;
        let (kept, rest) = (magnitude >> cut, magnitude & ((1 << cut) - 1));
        let significand = round(kept, rest, if cut == 0 { 1 } else { 1 << (cut - 1) });
        // Exact: the significand has at most 53 bits, and the lowest is that of an f64.
        let unsigned = significand as u64 as f64 * power_of_two(place + cut as i32 - 1074);
        if sum < 0 { -unsigned } else { unsigned }
    }

    /// Not a number, or infinite.
    #[cold]
    fn special(&self) -> f64 {
        match self.seen & (NAN | INFINITY | NEGATIVE_INFINITY) {
            INFINITY if self.contributions <= MOST => f64::INFINITY,
            NEGATIVE_INFINITY if self.contributions <= MOST => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }
}

/// From the smallest power to the largest.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    let exponent = exponent.clamp(-1074, 1023);
    if exponent < -1022 {
        f64::from_bits(1 << (exponent + 1074))
    } else {
        f64::from_bits(((exponent + 1023) as u64) << SIGNIFICAND)
    }
}

impl fmt::Debug for PartialSum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} of {} contributions", self.nearest(), self.contributions)
    }
}

impl Equivalence for PartialSum {
    const PACKED_SIZE: usize = size_of::<Self>();
    const FINGERPRINT: u64 = Fingerprint::new().name("PartialSum").finish();

    fn pack(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(IntoBytes::as_bytes(self));
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        Self::read_from_bytes(bytes)
            .map_err(|_| InvalidValue { type_name: "PartialSum", offset: bytes.len() })
    }

    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        Some(IntoBytes::as_bytes(values))
    }

    fn as_bytes_mut(values: &mut [Self]) -> Option<&mut [u8]> {
        Some(IntoBytes::as_mut_bytes(values))
    }
}
