//! Every rule on every format: the blocks of every instruction set against one element at a time.

use super::arch::{Arch, Baseline, InstructionSet, Task};
use super::fold::{Fold, Plain};
use super::number::Number;
use super::rule::{Mean, Rule, Scaled, WideMean, finish_block, lift_block, merge_block};
use crate::float::Small;
use crate::operation::{
    BitwiseAnd, BitwiseOr, BitwiseXor, Located, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min, MinLoc,
    Product, ReproducibleAverage, ReproducibleSum, Sum, WideSum,
};
use crate::{Element, F8E4m3, F8E5m2, Float, Integer};
use half::{bf16, f16};
use std::fmt::Debug;
use zerocopy::IntoBytes;

/// Longer than the blocks by every possible rest, and than any register.
const LONGEST: usize = 130;

/// A rule on values of a type, both forgotten, so that the comparison is compiled once.
struct Subject<'a> {
    size: usize,
    values: &'a [u8],
    /// Combines a value of each rank, the first rank first.
    define: &'a dyn Fn(&[&[u8]]) -> Vec<u8>,
    /// As `Kernel::fold`, by the blocks of an instruction set.
    fold: &'a FoldFunction<'a>,
}

type FoldFunction<'a> = dyn Fn(InstructionSet, &[*const u8], &[*mut u8], usize) + 'a;

/// Compares a rule with its definition on `values`, for all lengths, alignments and numbers of sources.
fn check<T: Plain, R: Rule<T>>(rule: R, values: &[T]) {
    let define = |contributions: &[&[u8]]| {
        let mut lifted = contributions.iter().map(|bytes| {
            lift_block(Baseline, rule, &[T::read_from_bytes(bytes).expect("of the element's size")])
        });
        let mut accumulators = lifted.next().expect("a contribution");
        for contribution in lifted {
            merge_block::<T, R, 1>(rule, &mut accumulators, &contribution);
        }
        let [result] = finish_block(Baseline, rule, &accumulators);
        result.as_bytes().to_vec()
    };
    let fold = |set: InstructionSet, sources: &[*const u8], destinations: &[*mut u8], length| {
        // SAFETY: `compare` passes pointers to `length` elements that outlive the call and that nothing else touches.
        set.run(unsafe { Fold::<T, R>::new(rule, sources, destinations, length) });
    };
    let subject = Subject { size: size_of::<T>(), values: values.as_bytes(), define: &define, fold: &fold };
    for ranks in [1, 2, 3, 6] {
        for length in 0..=LONGEST {
            subject.compare(ranks, length, length);
        }
        // Every value at every place.
        for shift in 0..values.len() {
            subject.compare(ranks, LONGEST, shift);
        }
    }
}

impl Subject<'_> {
    fn compare(&self, ranks: usize, length: usize, shift: usize) {
        let values: Vec<&[u8]> = self.values.chunks(self.size).collect();
        let value =
            |rank: usize, index: usize| values[(index + shift * (rank + 1) + 5 * rank) % values.len()];
        let contributions =
            |index: usize| -> Vec<&[u8]> { (0..ranks).map(|rank| value(rank, index)).collect() };
        let expected: Vec<u8> = (0..length).flat_map(|index| (self.define)(&contributions(index))).collect();
        for set in InstructionSet::available() {
            let source = |rank: usize| (0..length).flat_map(|index| value(rank, index).to_vec()).collect();
            let mut sources: Vec<Unaligned> = (0..ranks).map(|rank| Unaligned::new(source(rank))).collect();
            let mut apart = Unaligned::new(vec![0; expected.len()]);
            let pointers: Vec<*mut u8> = sources.iter_mut().map(Unaligned::pointer).collect();
            let source_pointers: Vec<*const u8> =
                pointers.iter().map(|pointer| pointer.cast_const()).collect();
            let destinations = [pointers[0], apart.pointer(), pointers[ranks - 1]];
            (self.fold)(set, &source_pointers, &destinations, length);
            for result in [&sources[0], &apart, &sources[ranks - 1]] {
                assert_eq!(result.bytes(), expected, "{set:?}: {ranks} sources of {length} elements");
            }
        }
    }
}

/// Bytes at an odd address.
struct Unaligned {
    memory: Vec<u8>,
}

impl Unaligned {
    fn new(mut bytes: Vec<u8>) -> Self {
        bytes.insert(0, 0xee);
        Self { memory: bytes }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.memory[1..].as_mut_ptr()
    }

    fn bytes(&self) -> &[u8] {
        assert_eq!(self.memory[0], 0xee, "the byte before is untouched");
        &self.memory[1..]
    }
}

/// Values of every kind that a float format has, both signs, and some at random.
fn floats<T: Element>(mantissa: u32) -> Vec<T>
where
    T::Bits: TryFrom<u64, Error: Debug>,
{
    let width = 8 * size_of::<T>() as u32;
    let sign = 1_u64 << (width - 1);
    let infinity = sign - (1 << mantissa);
    let one = (infinity >> (mantissa + 1)) << mantissa;
    let quiet = 1 << (mantissa - 1);
    let kinds = [
        0,
        1,
        (1 << mantissa) - 1,
        1 << mantissa,
        one - (1 << mantissa),
        one,
        one + 1,
        one | quiet,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity | quiet,
        sign - 1,
    ];
    let bits = kinds.into_iter().flat_map(|kind| [kind, kind | sign]).chain(scattered(width));
    bits.map(|bits| T::from_raw_bits(T::Bits::try_from(bits).expect("within the width"))).collect()
}

/// The ends of an integer format, and some values at random.
fn integers<T: Integer>() -> Vec<T>
where
    T::Bits: TryFrom<u64, Error: Debug>,
{
    let width = 8 * size_of::<T>() as u32;
    let all = u64::MAX >> (64 - width);
    let bits = [0, 1, 2, all, all >> 1, (all >> 1) + 1].into_iter().chain(scattered(width));
    bits.map(|bits| T::from_raw_bits(T::Bits::try_from(bits).expect("within the width"))).collect()
}

fn scattered(width: u32) -> impl Iterator<Item = u64> {
    (1..=9_u64).map(move |step| step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width))
}

fn check_floats<T: Float + Debug>(mantissa: u32)
where
    T::Bits: TryFrom<u64, Error: Debug> + Debug,
{
    let values = floats::<T>(mantissa);
    check(Sum, &values);
    check(Mean { contributions: 3 }, &values);
    check(Scaled { factor: -0.3 }, &values);
    check(WideSum, &values);
    check(WideMean { contributions: 3 }, &values);
    check(ReproducibleSum, &values);
    check(ReproducibleAverage, &values);
    check(Product, &values);
    check(Min, &values);
    check(Max, &values);
    check_located(&values);
}

fn check_integers<T: Integer + Debug>()
where
    T::Bits: TryFrom<u64, Error: Debug> + Debug,
{
    let values = integers::<T>();
    check(Sum, &values);
    check(Product, &values);
    check(Min, &values);
    check(Max, &values);
    check(BitwiseAnd, &values);
    check(BitwiseOr, &values);
    check(BitwiseXor, &values);
    check(LogicalAnd, &values);
    check(LogicalOr, &values);
    check(LogicalXor, &values);
    check_located(&values);
}

fn check_located<T: Element + Debug>(values: &[T])
where
    T::Bits: TryFrom<u64, Error: Debug> + Debug,
{
    let index = |place: usize| T::Bits::try_from(place as u64 % 3).expect("small");
    let located: Vec<_> =
        values.iter().enumerate().map(|(place, value)| Located::new(*value, index(place))).collect();
    check(MinLoc, &located);
    check(MaxLoc, &located);
}

macro_rules! formats {
    ($($name:ident: $check:expr;)*) => {$(
        #[test]
        fn $name() {
            $check;
        }
    )*};
}

formats! {
    every_rule_on_f64: check_floats::<f64>(52);
    every_rule_on_f32: check_floats::<f32>(23);
    every_rule_on_bf16: check_floats::<bf16>(7);
    every_rule_on_f16: check_floats::<f16>(10);
    every_rule_on_f8e4m3: check_floats::<F8E4m3>(3);
    every_rule_on_f8e5m2: check_floats::<F8E5m2>(2);
    every_rule_on_i8: check_integers::<i8>();
    every_rule_on_i16: check_integers::<i16>();
    every_rule_on_i32: check_integers::<i32>();
    every_rule_on_i64: check_integers::<i64>();
    every_rule_on_u8: check_integers::<u8>();
    every_rule_on_u16: check_integers::<u16>();
    every_rule_on_u32: check_integers::<u32>();
    every_rule_on_u64: check_integers::<u64>();
}

/// Converts by the blocks of an instruction set.
struct Convert<'a, S> {
    wide: &'a [f32; 40],
    narrowed: &'a mut [S; 40],
    widened: &'a mut [f32; 40],
}

impl<S: Number<Wide = f32>> Task for Convert<'_, S> {
    #[inline(always)]
    fn run<A: Arch>(self, arch: A) {
        *self.narrowed = S::narrow_block(arch, self.wide);
        *self.widened = S::widen_block(arch, self.narrowed);
    }
}

/// Every value of every small float, and the f32 around each and around what is half way to the next, converted by
/// vector instructions and by integer arithmetic.
#[test]
fn conversions_of_every_instruction_set() {
    fn check<S: Small + Number<Wide = f32> + Default>(set: InstructionSet) {
        for first in (0..=u16::MAX).step_by(8) {
            let mut wide = [0.0; 40];
            for (offset, wide) in (0..).zip(wide.chunks_exact_mut(5)) {
                let exact = S::from_low_bits(u32::from(first) + offset).widen().to_bits();
                let half_way = exact + (1 << (22 - S::MANTISSA));
                wide.copy_from_slice(
                    &[exact, exact.wrapping_sub(1), half_way, half_way - 1, half_way + 1].map(f32::from_bits),
                );
            }
            let (mut narrowed, mut widened) = ([S::default(); 40], [0.0; 40]);
            set.run(Convert { wide: &wide, narrowed: &mut narrowed, widened: &mut widened });
            for ((wide, narrowed), widened) in wide.into_iter().zip(narrowed).zip(widened) {
                let expected = S::narrow(wide);
                assert_eq!(narrowed.low_bits(), expected.low_bits(), "{set:?}: {:#x}", wide.to_bits());
                assert_eq!(
                    widened.to_bits(),
                    expected.widen().to_bits(),
                    "{set:?}: {:#x}",
                    narrowed.low_bits()
                );
            }
        }
    }
    for set in InstructionSet::available() {
        check::<bf16>(set);
        check::<f16>(set);
        check::<F8E4m3>(set);
        check::<F8E5m2>(set);
    }
}

/// Every pair of 8-bit floats, by the blocks of every instruction set and one element at a time.
#[test]
fn every_pair_of_8_bit_floats() {
    fn check<T: Float + Plain>(from_bits: fn(u8) -> T) {
        let all: Vec<T> = (0..=u8::MAX).map(from_bits).collect();
        check_pairs(Sum, &all);
        check_pairs(Product, &all);
        check_pairs(Min, &all);
        check_pairs(Max, &all);
        check_pairs(Mean { contributions: 3 }, &all);
    }
    check(F8E4m3::from_bits);
    check(F8E5m2::from_bits);
}

fn check_pairs<T: Plain, R: Rule<T>>(rule: R, all: &[T]) {
    for left in all {
        let lefts = vec![*left; all.len()];
        let define = |right: &T| {
            let mut accumulators = lift_block(Baseline, rule, &[*left]);
            merge_block::<T, R, 1>(rule, &mut accumulators, &lift_block(Baseline, rule, &[*right]));
            finish_block(Baseline, rule, &accumulators)[0]
        };
        let expected: Vec<T> = all.iter().map(define).collect();
        for set in InstructionSet::available() {
            let mut found = lefts.clone();
            let sources = [lefts.as_ptr().cast(), all.as_ptr().cast()];
            let destinations = [found.as_mut_ptr().cast()];
            // SAFETY: the pointers are to as many elements as `all` has; nothing else touches them during the call.
            set.run(unsafe { Fold::<T, R>::new(rule, &sources, &destinations, all.len()) });
            assert_eq!(found.as_bytes(), expected.as_bytes(), "{set:?}: {:?} and all", left.as_bytes());
        }
    }
}
