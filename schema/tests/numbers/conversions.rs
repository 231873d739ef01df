//! Conversions between float formats, against definitions in f64 and against the `half` crate.

use gradwire_schema::{ConvertTo, Element, F8E4m3, F8E5m2};
use half::{bf16, f16};
use proptest::prelude::*;
use std::fmt::Debug;

/// A format as its defining numbers.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    mantissa: u32,
    /// The largest finite value's bits.
    largest: u32,
    /// What is larger: infinity or NaN.
    overflow: u32,
    nan: u32,
}

const BF16: Format = Format { exponent: 8, mantissa: 7, largest: 0x7f7f, overflow: 0x7f80, nan: 0x7fc0 };
const F16: Format = Format { exponent: 5, mantissa: 10, largest: 0x7bff, overflow: 0x7c00, nan: 0x7e00 };
const F8_E5M2: Format = Format { exponent: 5, mantissa: 2, largest: 0x7b, overflow: 0x7c, nan: 0x7e };
const F8_E4M3: Format = Format { exponent: 4, mantissa: 3, largest: 0x7e, overflow: 0x7f, nan: 0x7f };

impl Format {
    /// The value of a magnitude; beyond the largest, what it would be if the exponent went on.
    fn value(self, magnitude: u32) -> f64 {
        let bias = (1 << (self.exponent - 1)) - 1;
        let (exponent, mantissa) =
            (magnitude >> self.mantissa, f64::from(magnitude & ((1 << self.mantissa) - 1)));
        let scale = f64::from(1 << self.mantissa);
        match exponent {
            0 => mantissa / scale * f64::powi(2.0, 1 - bias),
            _ => (1.0 + mantissa / scale) * f64::powi(2.0, exponent as i32 - bias),
        }
    }

    fn sign(self) -> u32 {
        1 << (self.exponent + self.mantissa)
    }

    /// The nearest magnitude, found by going through all of them.
    fn nearest(self, value: f64) -> u32 {
        let (mut low, mut high) = (0, self.largest + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.value(middle) <= value { low = middle } else { high = middle }
        }
        let (below, above) = (value - self.value(low), self.value(high) - value);
        let nearest = if below < above || (below == above && low % 2 == 0) { low } else { high };
        if nearest > self.largest { self.overflow } else { nearest }
    }
}

fn convert<A: ConvertTo<B>, B: Element>(value: A) -> u64
where
    B::Bits: Into<u64>,
{
    let mut destination = [B::default()];
    A::convert_to(&[value], &mut destination);
    destination[0].into_raw_bits().into()
}

fn convert_back<A: ConvertTo<B>, B: Element>(value: B) -> A {
    let mut destination = [A::default()];
    A::convert_from(&[value], &mut destination);
    destination[0]
}

/// Every value of a format to f32, f64 and back; and what lies half way to the next one, and around it.
fn check_all<S>(format: Format, of_bits: impl Fn(u32) -> S)
where
    S: Element<Bits: Into<u64>> + Debug,
    f32: ConvertTo<S>,
    f64: ConvertTo<S>,
{
    let bits_of = |bits: u64| u32::try_from(bits).expect("a small format");
    for magnitude in 0..format.sign() {
        for sign in [0, format.sign()] {
            let value: f64 = convert_back(of_bits(sign | magnitude));
            let value_f32: f32 = convert_back(of_bits(sign | magnitude));
            assert!(f64::from(value_f32).to_bits() == value.to_bits(), "{magnitude:#x}");
            let expected = match magnitude {
                finite if finite <= format.largest => format.value(finite),
                overflow if overflow == format.overflow && overflow != format.nan => f64::INFINITY,
                _ => f64::NAN,
            };
            if expected.is_nan() {
                assert_eq!(value.to_bits(), 0x7ff8_0000_0000_0000, "{magnitude:#x}");
                assert_eq!(bits_of(convert::<f64, S>(value)), format.nan);
                continue;
            }
            let signed = if sign == 0 { expected } else { -expected };
            assert_eq!(value.to_bits(), signed.to_bits(), "{magnitude:#x}");
            assert_eq!(bits_of(convert::<f64, S>(value)), sign | magnitude);
            assert_eq!(bits_of(convert::<f32, S>(value_f32)), sign | magnitude);
            if magnitude > format.largest {
                continue;
            }

            let half_way = (format.value(magnitude) + format.value(magnitude + 1)) / 2.0;
            // A rounding to f32 on the way would lose what tells the neighbours from half way.
            for near in [half_way, half_way.next_up(), half_way.next_down()] {
                let mut expected = format.nearest(near);
                if expected != format.nan {
                    expected |= sign;
                }
                let signed = if sign == 0 { near } else { -near };
                assert_eq!(bits_of(convert::<f64, S>(signed)), expected, "{signed:e}");
                if f64::from(signed as f32) == signed {
                    assert_eq!(bits_of(convert::<f32, S>(signed as f32)), expected, "{signed:e}");
                }
            }
        }
    }
}

#[test]
fn every_bf16() {
    check_all(BF16, |bits| bf16::from_bits(bits as u16));
}

#[test]
fn every_f16() {
    check_all(F16, |bits| f16::from_bits(bits as u16));
}

#[test]
fn every_f8e5m2() {
    check_all(F8_E5M2, |bits| F8E5m2::from_bits(bits as u8));
}

#[test]
fn every_f8e4m3() {
    check_all(F8_E4M3, |bits| F8E4m3::from_bits(bits as u8));
}

#[test]
fn f8_overflows_as_documented() {
    for (value, not_saturated, saturated) in [
        (464.0, 448.0, 448.0),
        (464.1, f32::NAN, 448.0),
        (-1e9, f32::NAN, -448.0),
        (f32::INFINITY, f32::NAN, 448.0),
        (f32::NAN, f32::NAN, f32::NAN),
    ] {
        assert_same(F8E4m3::from_f32(value).to_f32(), not_saturated);
        assert_same(F8E4m3::saturating_from_f32(value).to_f32(), saturated);
    }
    for (value, not_saturated, saturated) in [
        (61439.0, 57344.0, 57344.0),
        (61440.0, f32::INFINITY, 57344.0),
        (f32::NEG_INFINITY, f32::NEG_INFINITY, -57344.0),
        (f32::NAN, f32::NAN, f32::NAN),
    ] {
        assert_same(F8E5m2::from_f32(value).to_f32(), not_saturated);
        assert_same(F8E5m2::saturating_from_f32(value).to_f32(), saturated);
    }
    assert_eq!(F8E4m3::from_f32(-0.0).to_bits(), 0x80);
    assert!(F8E4m3::from_bits(0xff).is_nan() && !F8E4m3::from_bits(0xfe).is_nan());
    assert!(F8E5m2::from_bits(0x7d).is_nan() && !F8E5m2::from_bits(0xfc).is_nan());
    assert!(F8E5m2::from_f32(-2.0) < F8E5m2::from_f32(-1.5));
    assert_ne!(F8E4m3::from_bits(0x7f), F8E4m3::from_bits(0x7f));
}

fn assert_same(left: f32, right: f32) {
    assert!(left == right || (left.is_nan() && right.is_nan()), "{left} and {right}");
}

#[test]
fn long_slices_convert_like_single_values() {
    let values: Vec<f32> =
        (0..133_u32).map(|index| f32::from_bits(index.wrapping_mul(0x9e37_79b9))).collect();
    fn check<S: Element<Bits: Into<u64>> + Debug>(values: &[f32])
    where
        f32: ConvertTo<S>,
    {
        let mut wire = vec![S::default(); values.len()];
        f32::convert_to(values, &mut wire);
        let mut back = vec![1.0; values.len()];
        f32::convert_from(&wire, &mut back);
        for ((value, wire), back) in values.iter().zip(wire).zip(back) {
            assert_eq!(convert::<f32, S>(*value), wire.into_raw_bits().into());
            assert_eq!(back.to_bits(), convert_back::<f32, S>(wire).to_bits());
        }
    }
    check::<bf16>(&values);
    check::<f16>(&values);
    check::<F8E4m3>(&values);
    check::<F8E5m2>(&values);
    check::<f64>(&values);
}

#[test]
fn the_same_format_keeps_its_bits() {
    let nan = f32::from_bits(0xffa5_1234);
    assert_eq!(convert::<f32, f32>(nan), 0xffa5_1234);
    assert_eq!(convert::<f64, f32>(f64::from_bits(0xfff0_0000_0000_0001)), 0x7fc0_0000);
    assert_eq!(convert::<f64, f32>(1e300), u64::from(f32::INFINITY.to_bits()));
}

proptest! {
    /// The `half` crate rounds the same way; it keeps payloads of NaN, which the wire does not.
    #[test]
    fn as_half_does(bits: u32) {
        let value = f32::from_bits(bits);
        prop_assume!(!value.is_nan());
        prop_assert_eq!(convert::<f32, bf16>(value), u64::from(bf16::from_f32(value).to_bits()));
        prop_assert_eq!(convert::<f32, f16>(value), u64::from(f16::from_f32(value).to_bits()));
    }

    /// Rounded once, not by way of f32.
    #[test]
    fn f64_rounds_once(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let sign = |format: Format| if value.is_sign_negative() { format.sign() } else { 0 };
        prop_assert_eq!(convert::<f64, bf16>(value), u64::from(BF16.nearest(value.abs()) | sign(BF16)));
        prop_assert_eq!(convert::<f64, f16>(value), u64::from(F16.nearest(value.abs()) | sign(F16)));
    }
}
