//! `#[derive(Equivalence)]` on enums: they travel as their discriminant, which is checked when it comes back.

use gradwire::Equivalence;
use gradwire_schema::InvalidValue;

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
#[repr(u8)]
enum Colour {
    Red = 1,
    Green,
    r#Blue = 200,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
#[repr(i16)]
enum Signed {
    Low = -300,
    High = 300,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
enum Plain {
    First,
    Second,
    Far = -1 << 30,
}

#[derive(Equivalence, Clone, Copy, PartialEq, Debug)]
enum Only<const N: usize> {
    One = 7,
}

/// Names that the expansion might mean.
mod names {
    #![allow(dead_code)]

    struct Ok;

    #[derive(gradwire::Equivalence, Clone, Copy, PartialEq, Debug)]
    #[repr(u8)]
    pub(super) enum Result {
        Ok,
        Err,
    }
}

fn packed<T: Equivalence>(value: T) -> Vec<u8> {
    let mut bytes = vec![0xaa; T::PACKED_SIZE];
    value.pack(&mut bytes);
    bytes
}

#[test]
fn a_value_is_its_discriminant() {
    assert_eq!([Colour::Red, Colour::Green, Colour::Blue].map(packed), [[1], [2], [200]]);
    assert_eq!(packed(Signed::Low), (-300_i16).to_le_bytes());
    assert_eq!(packed(Plain::Second), 1_i64.to_le_bytes());
    assert_eq!(packed(Plain::Far), (-1_i64 << 30).to_le_bytes());
    assert_eq!(packed(Only::<3>::One), 7_i64.to_le_bytes());
    assert_eq!(Plain::unpack(&(-1_i64 << 30).to_le_bytes()), Ok(Plain::Far));
    assert_eq!(names::Result::unpack(&packed(names::Result::Err)), Ok(names::Result::Err));
    assert_eq!(packed(names::Result::Ok), [0]);
}

#[test]
fn discriminants_that_no_variant_has_are_refused() {
    for byte in 0..=u8::MAX {
        let expected = match byte {
            1 => Ok(Colour::Red),
            2 => Ok(Colour::Green),
            200 => Ok(Colour::Blue),
            _ => Err(InvalidValue { type_name: "Colour", offset: 0 }),
        };
        assert_eq!(Colour::unpack(&[byte]), expected);
    }
    for other in [-301_i16, 299, 0, i16::MIN] {
        let expected = Err(InvalidValue { type_name: "Signed", offset: 0 });
        assert_eq!(Signed::unpack(&other.to_le_bytes()), expected);
    }
    // A discriminant that is right in its lower half only.
    assert!(Plain::unpack(&(1_i64 << 32).to_le_bytes()).is_err());
    for length in 0..8 {
        assert!(Plain::unpack(&[0; 8][..length]).is_err(), "{length} bytes");
    }
    let place = <[(u16, Colour); 2]>::unpack(&[1, 1, 1, 1, 1, 3]).unwrap_err();
    assert_eq!(place, InvalidValue { type_name: "Colour", offset: 5 });
}

#[test]
fn fingerprints_differ_with_what_the_discriminants_mean() {
    macro_rules! fingerprints {
        ($($repr:ident: $($name:ident = $value:literal),*;)*) => {[$({
            #[derive(Equivalence, Clone, Copy)]
            #[allow(dead_code)]
            #[repr($repr)]
            enum Value { $($name = $value),* }
            Value::FINGERPRINT
        }),*]};
    }
    let mut all = fingerprints! {
        u8: A = 0, B = 1;
        u8: B = 0, A = 1;
        u8: A = 0, B = 2;
        u8: A = 0;
        i8: A = 0, B = 1;
        u16: A = 0, B = 1;
        C: A = 0, B = 1;
    }
    .to_vec();
    all.push(u8::FINGERPRINT);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
