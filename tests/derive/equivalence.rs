//! `#[derive(Equivalence)]`: values travel field by field, without padding.

use gradwire::Equivalence;
use gradwire_schema::InvalidValue;
use gradwire_schema::layout::fingerprint_of_name;
use std::marker::PhantomData;

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Padded {
    a: u8,
    b: u64,
    r#type: u16,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Flag(bool, [i16; 3]);

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Marker;

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Generic<T: Equivalence, M, const N: usize>
where
    M: Copy + Send + 'static,
{
    items: [T; N],
    inner: Padded,
    nothing: Marker,
    marker: PhantomData<M>,
}

fn packed<T: Equivalence>(value: T) -> Vec<u8> {
    let mut bytes = vec![0xaa; T::PACKED_SIZE];
    value.pack(&mut bytes);
    bytes
}

#[test]
fn padding_never_leaves() {
    let value = Padded { a: 1, b: 0x0203_0405_0607_0809, r#type: 0x0a0b };
    assert_eq!(Padded::PACKED_SIZE, 11);
    assert!(size_of::<Padded>() > Padded::PACKED_SIZE);
    assert_eq!(packed(value), [1, 9, 8, 7, 6, 5, 4, 3, 2, 0x0b, 0x0a]);
    assert_eq!(Padded::unpack(&packed(value)), Ok(value));
    assert_eq!(Padded::as_bytes(&[value]), None, "its memory has padding");
}

#[test]
fn structs_nest() {
    let inner = Padded { a: 1, b: 2, r#type: 3 };
    let value = Generic {
        items: [Flag(true, [1, -2, 3]), Flag(false, [4, 5, 6])],
        inner,
        nothing: Marker,
        marker: PhantomData::<u8>,
    };
    let bytes = packed(value);
    assert_eq!(bytes.len(), 2 * 7 + 11);
    assert_eq!(Generic::unpack(&bytes), Ok(value));
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
#[repr(C, packed)]
struct Unaligned {
    a: u8,
    b: u32,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
struct Mixed<const ROWS: usize, const COLUMNS: usize, T = f32>
where
    T: Equivalence,
{
    matrix: [[T; COLUMNS]; ROWS],
    pair: (char, Unaligned),
    long: [u8; 100],
}

#[test]
fn packed_structs_tuples_and_constants_work() {
    let value = Mixed::<2, 3, i16> {
        matrix: [[1, 2, 3], [4, 5, -6]],
        pair: ('ß', Unaligned { a: 7, b: 0x0b0a_0908 }),
        long: std::array::from_fn(|index| index as u8),
    };
    let bytes = packed(value);
    assert_eq!(bytes[..21], [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 0xfa, 0xff, 0xdf, 0, 0, 0, 7, 8, 9, 10, 11]);
    assert_eq!(bytes.len(), 121);
    assert_eq!(Mixed::unpack(&bytes), Ok(value));
    assert_ne!(Mixed::<2, 3>::FINGERPRINT, Mixed::<3, 2>::FINGERPRINT);
    assert_ne!(Mixed::<2, 3>::FINGERPRINT, Mixed::<2, 3, f64>::FINGERPRINT);
}

#[test]
fn values_that_do_not_exist_are_refused_where_they_stand() {
    let mut bytes = [0; 25];
    bytes[7] = 2;
    let error = Generic::<Flag, (), 2>::unpack(&bytes).unwrap_err();
    assert_eq!(error, InvalidValue { type_name: "bool", offset: 7 });
    assert_eq!(error.to_string(), "byte 7 of a `bool` holds a value that the type does not have");
    for length in 0..11 {
        assert!(Padded::unpack(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn fingerprints_differ_with_what_the_bytes_mean() {
    macro_rules! fingerprints {
        ($($($name:ident: $type:ty),*;)*) => {[$({
            #[derive(Equivalence, Clone, Copy)]
            #[allow(dead_code)]
            struct Value { $($name: $type),* }
            Value::FINGERPRINT
        }),*]};
    }
    let mut all = fingerprints! {
        a: u8, b: u8;
        b: u8, a: u8;
        a: u8;
        a: u8, b: i8;
        a: u8, b: bool;
        a: [u8; 2];
        a: [u8; 3];
        a: [[u8; 1]; 2];
        a: Padded;
        a: Flag;
        ab: u8;
    }
    .to_vec();
    all.push(fingerprint_of_name("u8"));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
