//! Compiling a loop for several instruction sets, and choosing one at run time.
//!
//! Loops are written once, in plain Rust that vectorises, and compiled again with AVX2 and with AVX-512 enabled. All
//! versions give the same bits: Rust neither fuses nor reorders float operations, and what a NaN may differ in is gone
//! when it is stored, canonical. Only conversions of small floats are worth instructions picked by hand. Other
//! architectures have what their baseline has (NEON on 64-bit ARM).

#[cfg(target_arch = "x86_64")]
mod x86_64;

use super::number::Number;
use crate::{F8E4m3, F8E5m2};
use half::{bf16, f16};
use std::sync::OnceLock;

/// A loop to be compiled for each instruction set.
pub(crate) trait Task {
    /// Runs it. To be marked `#[inline(always)]`, as all that it calls: then it is compiled for the instruction set of
    /// its caller, which has that of `A`.
    fn run<A: Arch>(self, arch: A);
}

/// An instruction set, and a proof that this processor has it.
pub trait Arch: Copy {
    /// The same values.
    #[inline(always)]
    fn widen_bf16<const N: usize>(self, elements: &[bf16; N]) -> [f32; N] {
        each(elements, Number::widen)
    }

    /// The nearest values, NaN canonical.
    #[inline(always)]
    fn narrow_bf16<const N: usize>(self, wide: &[f32; N]) -> [bf16; N] {
        each(wide, bf16::narrow)
    }

    /// The same values.
    #[inline(always)]
    fn widen_f16<const N: usize>(self, elements: &[f16; N]) -> [f32; N] {
        each(elements, Number::widen)
    }

    /// The nearest values, NaN canonical.
    #[inline(always)]
    fn narrow_f16<const N: usize>(self, wide: &[f32; N]) -> [f16; N] {
        each(wide, f16::narrow)
    }

    /// The same values.
    #[inline(always)]
    fn widen_f8e4m3<const N: usize>(self, elements: &[F8E4m3; N]) -> [f32; N] {
        each(elements, Number::widen)
    }

    /// The nearest values, NaN canonical.
    #[inline(always)]
    fn narrow_f8e4m3<const N: usize>(self, wide: &[f32; N]) -> [F8E4m3; N] {
        each(wide, F8E4m3::narrow)
    }

    /// The same values.
    #[inline(always)]
    fn widen_f8e5m2<const N: usize>(self, elements: &[F8E5m2; N]) -> [f32; N] {
        each(elements, Number::widen)
    }

    /// The nearest values, NaN canonical.
    #[inline(always)]
    fn narrow_f8e5m2<const N: usize>(self, wide: &[f32; N]) -> [F8E5m2; N] {
        each(wide, F8E5m2::narrow)
    }
}

/// Applies `function` to each element. Unlike `array::map` it vectorises.
#[inline(always)]
pub(crate) fn each<S: Copy, D: Copy + Default, const N: usize>(
    source: &[S; N],
    function: impl Fn(S) -> D,
) -> [D; N] {
    let mut destination = [D::default(); N];
    for (destination, source) in destination.iter_mut().zip(source) {
        *destination = function(*source);
    }
    destination
}

/// What every processor of the target has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline;

impl Arch for Baseline {}

/// Runs `task`, compiled for the best instruction set that this processor has.
#[inline]
pub(crate) fn run(task: impl Task) {
    static BEST: OnceLock<InstructionSet> = OnceLock::new();
    BEST.get_or_init(InstructionSet::best).run(task);
}

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InstructionSet {
    Baseline(Baseline),
    #[cfg(target_arch = "x86_64")]
    Avx2(x86_64::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(x86_64::Avx512),
}

impl InstructionSet {
    /// All that this processor has, the best one last.
    pub(crate) fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut available = vec![Self::Baseline(Baseline)];
        #[cfg(target_arch = "x86_64")]
        {
            available.extend(x86_64::Avx2::detect().map(Self::Avx2));
            available.extend(x86_64::Avx512::detect().map(Self::Avx512));
        }
        available
    }

    fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Baseline(Baseline))
    }

    /// Runs `task`, compiled for this set.
    #[inline]
    pub(crate) fn run(self, task: impl Task) {
        match self {
            Self::Baseline(baseline) => task.run(baseline),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.run(task),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(avx512) => avx512.run(task),
        }
    }
}
