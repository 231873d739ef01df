//! What the operations mean, checked on slices and on kernels against values written out by hand.

use gradwire_schema::gradient::StaticReduction;
use gradwire_schema::operation::{
    Average, BitwiseAnd, BitwiseOr, BitwiseXor, Laws, Located, LogicalAnd, LogicalOr, LogicalXor, Max,
    MaxLoc, Min, MinLoc, Operation, PreMultipliedSum, Product, Sum, WideAverage, WideSum,
};
use gradwire_schema::reduce::Partials;
use gradwire_schema::{Element, Equivalence, F8E4m3, F8E5m2, OperationId, Reduction};
use half::{bf16, f16};
use std::fmt::Debug;
use std::num::NonZeroU64;

/// Reduces by the slice functions, and by the kernel into the first contribution in place; both must agree.
fn reduce<T, R>(reduction: &R, contributions: &[&[T]]) -> Vec<T>
where
    T: Equivalence + Debug,
    R: Reduction<T>,
    R::Accumulator: Debug,
{
    let (first, others) = contributions.split_first().expect("a contribution");
    let mut accumulators: Vec<R::Accumulator> = first.iter().map(|_| R::Accumulator::default()).collect();
    reduction.lift(first, &mut accumulators);
    for other in others {
        reduction.combine(&mut accumulators, other);
    }
    let mut by_slices = first.to_vec();
    reduction.finish(&accumulators, contributions.len() as u64, &mut by_slices);

    let Some(kernel) = reduction.kernel() else { return by_slices };
    let mut by_kernel = first.to_vec();
    let destination: *mut u8 = by_kernel.as_mut_ptr().cast();
    let mut sources: Vec<*const u8> = contributions.iter().map(|source| source.as_ptr().cast()).collect();
    sources[0] = destination;
    // SAFETY: sources and the destination are live slices of equal length; the destination is the first source.
    unsafe {
        kernel.fold(&sources, &[destination], first.len(), NonZeroU64::new(contributions.len() as u64));
    }
    assert_eq!(bytes(&by_slices), bytes(&by_kernel), "{reduction:?}: {by_slices:?} and {by_kernel:?}");
    by_slices
}

fn bytes<T: Equivalence>(values: &[T]) -> Vec<u8> {
    T::as_bytes(values).expect("plain").to_vec()
}

fn bf16s(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|value| bf16::from_f32(*value)).collect()
}

#[test]
fn sums() {
    assert_eq!(reduce(&Sum, &[&[1.5_f64, -1.0], &[2.0, 4.0], &[10.0, 0.5]]), [13.5, 3.5]);
    assert_eq!(reduce(&Sum, &[&[i32::MAX, 7], &[1, -9]]), [i32::MIN, -2], "integers wrap around");
    assert_eq!(reduce(&Sum, &[&[250_u8], &[10]]), [4]);
}

/// The slice functions and the kernels at every length, with values that differ by rank and place.
#[test]
fn slices_and_kernels_agree() {
    fn check<T: Element + Debug, R: Reduction<T, Accumulator: Debug + Equivalence>>(
        reduction: R,
        value: impl Fn(usize) -> T,
    ) {
        for length in 0..=130 {
            let contributions: Vec<Vec<T>> = (0..4)
                .map(|rank| (0..length).map(|index| value(rank * 1009 + index * 13)).collect())
                .collect();
            let by_fold =
                reduce(&reduction, &contributions.iter().map(|values| &values[..]).collect::<Vec<&[T]>>());
            if reduction.kernel().is_some_and(|kernel| kernel.partials() == Partials::Rounded) {
                continue;
            }
            // Exact here: small integers, whatever the order.
            let partial = |pair: &[Vec<T>]| {
                let mut accumulators = vec![R::Accumulator::default(); length];
                reduction.lift(&pair[0], &mut accumulators);
                reduction.combine(&mut accumulators, &pair[1]);
                accumulators
            };
            let (mut left, right) = (partial(&contributions[..2]), partial(&contributions[2..]));
            reduction.merge(&mut left, &right);
            let mut merged = contributions[0].clone();
            reduction.finish(&left, 4, &mut merged);
            assert_eq!(bytes(&merged), bytes(&by_fold), "{reduction:?}");
        }
    }
    let small = |seed: usize| (seed * seed % 61) as f32 - 30.0;
    check(Sum, small);
    check(Average, |seed| f64::from(small(seed)));
    check(Sum, |seed| bf16::from_f32(small(seed)));
    check(Average, |seed| f16::from_f32(small(seed)));
    check(Product, |seed| F8E5m2::from_f32(small(seed)));
    check(Min, |seed| bf16::from_f32(small(seed)));
    check(Max, |seed| small(seed) as i8);
    check(BitwiseXor, |seed| seed as u16);
    check(LogicalOr, |seed| (seed % 3) as u64);
    check(PreMultipliedSum { factor: 0.25 }, small);
}

#[test]
fn contributions_are_combined_from_left_to_right() {
    assert_eq!(reduce(&Sum, &[&[1e8_f32], &[1.0], &[-1e8]]), [0.0]);
    assert_eq!(reduce(&Sum, &[&[1e8_f32], &[-1e8], &[1.0]]), [1.0]);
    assert_eq!(
        reduce(&Product, &[&[1e30_f32], &[1e30], &[0.0]])[0].to_bits(),
        0x7fc0_0000,
        "infinity times 0"
    );
}

#[test]
fn average_divides_once_at_the_end() {
    assert_eq!(reduce(&Average, &[&[1.0_f32, 9.0], &[2.0, 9.0], &[6.0, 9.0]]), [3.0, 9.0]);
    // 256 + 1 + 1 is 258 in bf16, but 256 + 1 alone is not 257.
    assert_eq!(reduce(&Average, &[&bf16s(&[256.0]), &bf16s(&[1.0]), &bf16s(&[1.0])]), bf16s(&[86.0]));
}

#[test]
fn a_partial_average_is_not_divided() {
    let (mut left, right) = ([3.0_f32, 5.0], [1.0_f32, 2.0]);
    let kernel = Reduction::<f32>::kernel(&Average).expect("built in");
    let destination: *mut u8 = left.as_mut_ptr().cast();
    // SAFETY: two live arrays of two elements; the destination is the first source.
    unsafe { kernel.fold(&[destination, right.as_ptr().cast()], &[destination], 2, None) };
    assert_eq!(left, [4.0, 7.0]);
}

#[test]
fn small_floats_accumulate_in_f32() {
    let ones = bf16s(&[1.0]);
    let mut contributions: Vec<&[bf16]> = vec![&ones; 65];
    let large = bf16s(&[256.0]);
    contributions[0] = &large;
    assert_eq!(reduce(&Sum, &contributions), bf16s(&[320.0]), "a running sum in bf16 stays at 256");

    let ones = [f16::from_f32(1.0)];
    let mut contributions: Vec<&[f16]> = vec![&ones; 65];
    let large = [f16::from_f32(2048.0)];
    contributions[0] = &large;
    assert_eq!(reduce(&Sum, &contributions), [f16::from_f32(2112.0)], "a running sum in f16 stays at 2048");

    let ones = [F8E4m3::from_f32(1.0)];
    let mut contributions: Vec<&[F8E4m3]> = vec![&ones; 17];
    let large = [F8E4m3::from_f32(16.0)];
    contributions[0] = &large;
    assert_eq!(reduce(&Sum, &contributions), [F8E4m3::from_f32(32.0)], "a running sum in f8e4m3 stays at 16");
}

#[test]
fn products() {
    assert_eq!(reduce(&Product, &[&[1.5_f32], &[-2.0], &[4.0]]), [-12.0]);
    assert_eq!(reduce(&Product, &[&[1_u16 << 15], &[3]]), [1 << 15]);
}

#[test]
fn bits_and_truth() {
    let (left, right) = ([0b1100_u8, 0, 7], [0b1010_u8, 0, 0]);
    assert_eq!(reduce(&BitwiseAnd, &[&left, &right]), [0b1000, 0, 0]);
    assert_eq!(reduce(&BitwiseOr, &[&left, &right]), [0b1110, 0, 7]);
    assert_eq!(reduce(&BitwiseXor, &[&left, &right]), [0b0110, 0, 7]);
    assert_eq!(reduce(&LogicalAnd, &[&left, &right]), [1, 0, 0]);
    assert_eq!(reduce(&LogicalOr, &[&left, &right]), [1, 0, 1]);
    assert_eq!(reduce(&LogicalXor, &[&left, &right]), [0, 0, 1]);
    assert_eq!(reduce(&LogicalXor, &[&[-5_i64], &[3], &[9]]), [1]);
}

#[test]
fn pre_multiplied_sum_multiplies_each_contribution_once() {
    let halves = PreMultipliedSum { factor: 0.5 };
    assert_eq!(reduce(&halves, &[&[2.0_f64], &[4.0], &[6.0]]), [6.0]);
    assert_eq!(reduce(&halves, &[&bf16s(&[3.0]), &bf16s(&[5.0])]), bf16s(&[4.0]));
    let kernel = Reduction::<f32>::kernel(&halves).expect("built in");
    assert_eq!((kernel.parameter(), kernel.partials()), (0.5, Partials::Rounded));
}

#[test]
fn extremes_of_integers() {
    assert_eq!(reduce(&Min, &[&[3_i8, -3], &[-128, 127]]), [-128, -3]);
    assert_eq!(reduce(&Max, &[&[3_u64, u64::MAX], &[7, 0]]), [7, u64::MAX]);
}

/// The rules of `Min` and `Max` for every pair of special values, in one float format.
macro_rules! extremes_of_floats {
    ($($name:ident: $type:ty, $nan:expr, $other_nan:expr, $low:expr, $high:expr;)*) => {$(
        #[test]
        fn $name() {
            let of = |value: f32| -> $type { <$type>::from_f32(value) };
            let other_nan = <$type>::from_bits($other_nan);
            let ascending = [of($low), of(-1.5), of(-0.0), of(0.0), of(0.25), of($high)];
            for (rank, small) in ascending.iter().enumerate() {
                for large in &ascending[rank..] {
                    for pair in [[*small, *large], [*large, *small]] {
                        let [left, right] = pair.map(|value| [value]);
                        assert_eq!(reduce(&Min, &[&left, &right])[0].to_bits(), small.to_bits(), "min of {pair:?}");
                        assert_eq!(reduce(&Max, &[&left, &right])[0].to_bits(), large.to_bits(), "max of {pair:?}");
                    }
                }
                for pair in [[*small, other_nan], [other_nan, *small]] {
                    let [left, right] = pair.map(|value| [value]);
                    for result in [
                        reduce(&Min, &[&left, &right]),
                        reduce(&Max, &[&left, &right]),
                        reduce(&Sum, &[&left, &right]),
                        reduce(&Product, &[&left, &right]),
                        reduce(&Average, &[&left, &right]),
                    ] {
                        assert_eq!(result[0].to_bits(), $nan, "{pair:?}");
                    }
                }
            }
            for result in [reduce(&Min, &[&[other_nan]]), reduce(&Max, &[&[other_nan]]), reduce(&Sum, &[&[other_nan]])] {
                assert_eq!(result[0].to_bits(), $nan, "a single NaN");
            }
        }
    )*};
}

trait FromF32 {
    fn from_f32(value: f32) -> Self;
}

impl FromF32 for f32 {
    fn from_f32(value: f32) -> Self {
        value
    }
}

impl FromF32 for f64 {
    fn from_f32(value: f32) -> Self {
        value.into()
    }
}

extremes_of_floats! {
    f64_extremes: f64, 0x7ff8_0000_0000_0000, 0xfff0_0000_0000_0001, f32::NEG_INFINITY, f32::INFINITY;
    f32_extremes: f32, 0x7fc0_0000, 0xff80_0001, f32::NEG_INFINITY, f32::INFINITY;
    bf16_extremes: bf16, 0x7fc0, 0xff81, f32::NEG_INFINITY, f32::INFINITY;
    f16_extremes: f16, 0x7e00, 0xfc01, f32::NEG_INFINITY, f32::INFINITY;
    f8e4m3_extremes: F8E4m3, 0x7f, 0xff, -448.0, 448.0;
    f8e5m2_extremes: F8E5m2, 0x7e, 0xfd, f32::NEG_INFINITY, f32::INFINITY;
}

#[test]
fn nan_reaches_the_result_from_any_rank() {
    let rows = [[1.0_f32], [f32::NAN], [3.0], [4.0]];
    for shift in 0..rows.len() {
        let contributions: Vec<&[f32]> =
            (0..rows.len()).map(|rank| &rows[(rank + shift) % rows.len()][..]).collect();
        assert_eq!(reduce(&Min, &contributions)[0].to_bits(), 0x7fc0_0000);
        assert_eq!(reduce(&Max, &contributions)[0].to_bits(), 0x7fc0_0000);
    }
}

#[test]
fn located_extremes() {
    let pairs = |values: [f32; 3], index: u32| values.map(|value| Located::new(value, index));
    let (first, second, third) =
        (pairs([1.0, 5.0, 0.0], 2), pairs([1.0, 7.0, -0.0], 0), pairs([1.0, 7.0, f32::NAN], 1));
    let seen = |result: Vec<Located<f32>>| -> Vec<(u32, u32)> {
        result.iter().map(|located| (located.value().to_bits(), located.index())).collect()
    };
    let (one, five, seven, nan) = (1.0_f32.to_bits(), 5.0_f32.to_bits(), 7.0_f32.to_bits(), 0x7fc0_0000);
    for order in [[&first, &second, &third], [&third, &second, &first], [&second, &first, &third]] {
        let contributions = order.map(|values| &values[..]);
        assert_eq!(seen(reduce(&MinLoc, &contributions)), [(one, 0), (five, 2), (nan, 1)]);
        assert_eq!(seen(reduce(&MaxLoc, &contributions)), [(one, 0), (seven, 0), (nan, 1)]);
    }
    let zeros = [&first[2..], &second[2..]];
    assert_eq!(seen(reduce(&MinLoc, &zeros)), [(0x8000_0000, 0)]);
    assert_eq!(seen(reduce(&MaxLoc, &zeros)), [(0, 2)]);
    assert_eq!(bytes(&first[..1]), [0, 0, 0x80, 0x3f, 2, 0, 0, 0], "value first, no padding");
    assert_ne!(Located::<f32>::FINGERPRINT, Located::<i32>::FINGERPRINT);
}

#[test]
fn a_users_operation_is_known_by_its_name() {
    let concatenate = |totals: &mut [u32], source: &[u32]| {
        for (total, source) in totals.iter_mut().zip(source) {
            *total = *total * 10 + source;
        }
    };
    let operation = Operation::new("concatenate", Laws::none().associative(), concatenate);
    assert_eq!(reduce(&operation, &[&[1, 4], &[2, 5], &[3, 6]]), [123, 456]);

    let properties = Reduction::<u32>::properties(&operation);
    assert_eq!(
        (properties.name, properties.commutative, properties.associative),
        ("concatenate", false, true)
    );
    assert_eq!(properties.id.0 >> 63, 1);
    assert_eq!(properties.id, Operation::new("concatenate", Laws::none(), concatenate).id());
    assert_ne!(properties.id, Operation::new("concatenated", Laws::none(), concatenate).id());
    assert!(Reduction::<u32>::kernel(&operation).is_none());
}

/// What f32 loses on the way.
#[test]
fn wide_sums_are_rounded_once() {
    let contributions: [&[f32]; 4] =
        [&[1e8, 1.0, 3e38], &[1.0, 1e-8, 3e38], &[-1e8, -1.0, -3e38], &[2.0, 0.0, 0.0]];
    assert_eq!(reduce(&Sum, &contributions), [2.0, 0.0, f32::INFINITY]);
    assert_eq!(reduce(&WideSum, &contributions), [3.0, 1e-8, 3e38]);
    assert_eq!(reduce(&WideAverage, &contributions), [0.75, 0.25e-8, 0.75e38]);
    // A tie in the last place that f32 would have made: 1 + 2^-8 + 2^-33 is above the middle of two bf16.
    let small = [1.0, 0.003_906_25, 1.164_153_2e-10].map(|value: f32| [bf16::from_f32(value)]);
    let contributions: [&[bf16]; 3] = [&small[0], &small[1], &small[2]];
    assert_eq!(reduce(&Sum, &contributions), [bf16::ONE]);
    assert_eq!(reduce(&WideSum, &contributions), [bf16::from_f32(1.007_812_5)]);
    assert!(reduce(&WideSum, &[&[f32::NAN], &[1.0]])[0].to_bits() == 0x7fc0_0000);
}

#[test]
fn identities_are_stable() {
    fn named<R: StaticReduction>(_: R) -> (u64, &'static str) {
        assert_eq!(R::ID.to_string(), R::NAME);
        (R::ID.0, R::NAME)
    }
    let built_in = [
        named(Sum),
        named(Average),
        named(Product),
        named(Min),
        named(Max),
        named(MinLoc),
        named(MaxLoc),
        named(BitwiseAnd),
        named(BitwiseOr),
        named(BitwiseXor),
        named(LogicalAnd),
        named(LogicalOr),
        named(LogicalXor),
        named(WideSum),
        named(WideAverage),
    ];
    assert_eq!(built_in.map(|(id, _)| id).to_vec(), (1..=15).collect::<Vec<_>>());
    let halves = PreMultipliedSum { factor: 0.5 };
    assert_eq!(halves.id(), OperationId(0x7cc2_84ad_7009_066d));
    assert_eq!(halves.id().to_string(), "pre_multiplied_sum");
    assert_ne!(halves.id(), PreMultipliedSum { factor: -0.5 }.id());
    assert_eq!(OperationId(99).to_string(), "operation 0x0000000000000063");
}

#[test]
fn partials() {
    fn of<T: Equivalence>(reduction: impl Reduction<T>) -> Partials {
        reduction.kernel().expect("built in").partials()
    }
    assert_eq!(of::<f32>(Sum), Partials::Exact);
    assert_eq!(of::<f64>(Average), Partials::Exact);
    assert_eq!(of::<i8>(Product), Partials::Exact);
    assert_eq!(of::<bf16>(Max), Partials::Exact);
    assert_eq!(of::<bf16>(Sum), Partials::Rounded);
    assert_eq!(of::<f16>(Average), Partials::Rounded);
    assert_eq!(of::<F8E5m2>(Product), Partials::Rounded);
    assert_eq!(of::<f32>(WideSum), Partials::Rounded);
    assert_eq!(of::<F8E4m3>(WideAverage), Partials::Rounded);
    assert_eq!(of::<f64>(PreMultipliedSum { factor: 2.0 }), Partials::Rounded);
}
