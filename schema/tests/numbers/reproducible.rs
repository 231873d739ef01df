//! Reproducible sums: what they are, and that neither order nor grouping shows.

use gradwire_schema::operation::{PartialSum, ReproducibleAverage, ReproducibleSum, Sum};
use gradwire_schema::{Equivalence, Float, Reduction};
use half::{bf16, f16};
use proptest::prelude::*;

/// Of one element, contributions one after the other.
fn reduce<T: Float, R: Reduction<T>>(reduction: R, contributions: &[T]) -> T {
    let mut accumulator = [R::Accumulator::default()];
    for (index, value) in contributions.iter().enumerate() {
        if index == 0 {
            reduction.lift(&[*value], &mut accumulator);
        } else {
            reduction.combine(&mut accumulator, &[*value]);
        }
    }
    let mut result = [T::default()];
    reduction.finish(&accumulator, contributions.len() as u64, &mut result);
    result[0]
}

/// Of one element, contributions in any grouping: `cuts` tells where a new partial sum begins.
fn regroup<T: Float, R>(reduction: R, contributions: &[T], cuts: &[bool]) -> T
where
    R: Reduction<T, Accumulator = PartialSum> + Reduction<PartialSum>,
{
    let mut partials = vec![PartialSum::default()];
    for (value, cut) in contributions.iter().zip(cuts) {
        if *cut {
            partials.push(PartialSum::default());
        }
        let last = partials.len() - 1;
        reduction.combine(&mut partials[last..], &[*value]);
    }
    // From the right, as no rank would.
    let (mut all, mut result) = ([PartialSum::default()], [T::default()]);
    for partial in partials.iter().rev() {
        Reduction::<T>::merge(&reduction, &mut all, &[*partial]);
    }
    reduction.finish(&all, 1, &mut result);
    result[0]
}

#[test]
fn sums_are_exact_and_rounded_once() {
    let tiny = f32::from_bits(1);
    for (contributions, expected) in [
        (&[1.0_f32, 2.0][..], 3.0),
        (&[f32::MAX, f32::MAX, -f32::MAX], f32::MAX),
        (&[f32::MAX, f32::MAX], f32::INFINITY),
        (&[tiny, tiny, tiny], f32::from_bits(3)),
        (&[f32::MIN_POSITIVE, -tiny], f32::from_bits(0x007f_ffff)),
        (&[1.0, f32::EPSILON / 2.0], 1.0),
        // Just above half way: rounding to f64 first would lose it.
        (&[1.0, f32::EPSILON / 2.0, 1.0e-18], 1.0 + f32::EPSILON),
        (&[-1.0, -f32::EPSILON / 2.0, -1.0e-18], -1.0 - f32::EPSILON),
        (&[1.0e18, 1.0, -1.0e18], 1.0),
        (&[0.0, -0.0], 0.0),
        (&[-0.0, -0.0], -0.0),
        (&[1.0, -1.0], 0.0),
        (&[f32::INFINITY, -f32::MAX], f32::INFINITY),
        (&[f32::NEG_INFINITY, 1.0], f32::NEG_INFINITY),
    ] {
        assert_eq!(reduce(ReproducibleSum, contributions).to_bits(), expected.to_bits(), "{contributions:?}");
    }
    let canonical = f32::NAN.to_bits();
    for contributions in
        [&[f32::INFINITY, f32::NEG_INFINITY][..], &[1.0, -f32::NAN], &[f32::NAN, f32::INFINITY]]
    {
        assert_eq!(reduce(ReproducibleSum, contributions).to_bits(), canonical, "{contributions:?}");
    }
    let tiny = f64::from_bits(1);
    assert_eq!(reduce(ReproducibleSum, &[tiny, tiny]).to_bits(), 2);
    assert_eq!(reduce(ReproducibleSum, &[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    assert_eq!(reduce(ReproducibleSum, &[f64::MAX, 2.0_f64.powi(970)]), f64::INFINITY, "half way to 2^1024");
    assert_eq!(reduce(ReproducibleSum, &[1.0, f64::EPSILON / 2.0, 2.0_f64.powi(-64)]), 1.0 + f64::EPSILON);
    let small = [1.0_f32, 0.003, 0.003].map(bf16::from_f32);
    assert_eq!(reduce(ReproducibleSum, &small), bf16::from_f32(1.0078125));
    assert_eq!(reduce(ReproducibleSum, &[f16::MAX, f16::MAX, -f16::MAX]), f16::MAX);
}

#[test]
fn averages_count_the_contributions_of_all() {
    assert_eq!(reduce(ReproducibleAverage, &[1.0_f32, 2.0, 6.0]), 3.0);
    assert_eq!(reduce(ReproducibleAverage, &[f64::MAX, f64::MAX]), f64::INFINITY, "the sum is rounded first");
    // Three contributions of the one rank, none of the other.
    assert_eq!(regroup(ReproducibleAverage, &[1.0_f32, 2.0, 6.0], &[false, false, false]), 3.0);
    assert_eq!(reduce::<f32, _>(ReproducibleAverage, &[]).to_bits(), 0);
}

/// What lies further than the kept bins below the largest contribution counts for nothing, wherever it comes from.
#[test]
fn what_is_cut_off_depends_on_the_largest_alone() {
    let (large, small) = (2.0_f64.powi(200), 2.0_f64.powi(100));
    let orders = [[large, small, -large], [small, large, -large], [large, -large, small]];
    for order in orders {
        assert_eq!(reduce(ReproducibleSum, &order).to_bits(), 0.0_f64.to_bits());
    }
    assert_eq!(orders.map(|order| reduce(Sum, &order)), [0.0, 0.0, small], "the plain sum shows the order");
}

#[test]
fn too_many_contributions_are_no_number() {
    let mut sum = [PartialSum::default()];
    ReproducibleSum.combine(&mut sum, &[1.0_f32]);
    for _ in 0..31 {
        let twice = sum;
        Reduction::<f32>::merge(&ReproducibleSum, &mut sum, &twice);
    }
    let mut result = [0.0_f32];
    ReproducibleSum.finish(&sum, 1, &mut result);
    assert_eq!((sum[0].contributions(), result[0]), (1 << 31, 2.0_f32.powi(31)));
    ReproducibleSum.combine(&mut sum, &[1.0_f32]);
    ReproducibleSum.finish(&sum, 1, &mut result);
    assert!(result[0].is_nan());
}

/// Numbers of every magnitude, the special ones, and pairs that cancel.
fn any_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => any::<u64>().prop_map(f64::from_bits),
        6 => (-1000_i64..1000, -40_i32..40).prop_map(|(factor, exponent)| factor as f64 * 2.0_f64.powi(exponent)),
        2 => (-4_i64..4).prop_map(|factor| factor as f64 * 1.0e300),
        1 => Just(0.0),
        1 => Just(-0.0),
        1 => (0_u64..4).prop_map(f64::from_bits),
    ]
}

/// The definition: each contribution cut below the three bins that the largest one reaches, added up as integers.
/// `None` where it is no number.
fn model(contributions: &[f64]) -> Option<f64> {
    let parts = contributions.iter().map(|value| {
        let (exponent, fraction) = (value.to_bits() >> 52 & 0x7ff, value.to_bits() & ((1 << 52) - 1));
        let significand = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        (exponent.max(1) as i32 - 1, i128::from(significand) * if value.is_sign_negative() { -1 } else { 1 })
    });
    let highest = parts.clone().map(|(place, _)| (place + 52) / 32).max()?;
    let lowest = 32 * (highest - 2);
    let sum: i128 = parts
        .map(|(place, significand)| match place - lowest {
            up @ 0.. => significand << up,
            down @ -127..0 => significand.signum() * (significand.abs() >> -down),
            _ => 0,
        })
        .sum();
    let scale = lowest - 1074;
    // Twice: the power itself may be below all numbers. Exact but for subnormal results, which are left out.
    let scaled = sum as f64 * 2.0_f64.powi(scale / 2) * 2.0_f64.powi(scale - scale / 2);
    (contributions.iter().all(|value| value.is_finite()) && (sum == 0 || scaled.is_normal()))
        .then_some(scaled)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn neither_order_nor_grouping_shows(
        contributions in prop::collection::vec(any_f64(), 1..40),
        cuts in prop::collection::vec(any::<bool>(), 40),
        seed in any::<prop::sample::Index>(),
    ) {
        let expected = reduce(ReproducibleSum, &contributions);
        if let Some(model) = model(&contributions) {
            prop_assert_eq!(expected, model);
        }
        let mut others = contributions.clone();
        others.sort_by(f64::total_cmp);
        others.rotate_left(seed.index(contributions.len()));
        for order in [&contributions, &others] {
            prop_assert_eq!(reduce(ReproducibleSum, order).to_bits(), expected.to_bits());
            prop_assert_eq!(regroup(ReproducibleSum, order, &cuts).to_bits(), expected.to_bits());
            let average = reduce(ReproducibleAverage, &contributions);
            prop_assert_eq!(regroup(ReproducibleAverage, order, &cuts).to_bits(), average.to_bits());
        }
        let narrow: Vec<f32> = contributions.iter().map(|value| *value as f32).collect();
        let others: Vec<f32> = others.iter().map(|value| *value as f32).collect();
        let expected = reduce(ReproducibleSum, &narrow);
        prop_assert_eq!(regroup(ReproducibleSum, &others, &cuts).to_bits(), expected.to_bits());
    }

    /// Integers that are exact in i128 are summed as they are there, and rounded as Rust rounds them.
    #[test]
    fn sums_of_integers_are_exact(contributions in prop::collection::vec((any::<i32>(), 0_u32..30), 1..50)) {
        let exact: i128 = contributions.iter().map(|(value, shift)| i128::from(*value >> 8) << shift).sum();
        let floats: Vec<f32> =
            contributions.iter().map(|(value, shift)| (*value >> 8) as f32 * (1_u32 << shift) as f32).collect();
        prop_assert_eq!(reduce(ReproducibleSum, &floats), exact as f32);
        let floats: Vec<f64> = floats.iter().map(|value| f64::from(*value)).collect();
        prop_assert_eq!(reduce(ReproducibleSum, &floats), exact as f64);
    }

    /// What a peer sends may be anything.
    #[test]
    fn any_bytes_are_a_partial_sum(bytes in any::<[[u8; 32]; 2]>(), value in any::<f64>()) {
        let mut sums = bytes.map(|bytes| PartialSum::unpack(&bytes).expect("of its size"));
        let (left, right) = sums.split_at_mut(1);
        ReproducibleSum.combine(left, &[value]);
        Reduction::<f64>::merge(&ReproducibleSum, left, right);
        ReproducibleSum.finish(left, 2, &mut [0.0_f32]);
        ReproducibleAverage.finish(left, 2, &mut [0.0_f64]);
        let _ = format!("{left:?}");
    }
}
