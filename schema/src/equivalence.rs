//! Data that can be moved.

use crate::layout::{Fingerprint, fingerprint_of_name};
use crate::{F8E4m3, F8E5m2};
use half::{bf16, f16};
use std::any::type_name;
use std::marker::PhantomData;

/// Bytes from a peer that are no value of the type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("byte {offset} of a `{type_name}` holds a value that the type does not have")]
pub struct InvalidValue {
    /// The type that refused.
    pub type_name: &'static str,
    /// Where in the packed value.
    pub offset: usize,
}

/// A type whose values can be moved between processes. Derive it with `#[derive(Equivalence)]`.
///
/// A value travels packed: its fields in the order of declaration, little endian, without padding. No unsafe
/// code trusts an implementation: a wrong one moves wrong values, nothing worse. Types without padding for
/// which every bit pattern is a value offer their bytes through [`as_bytes`](Self::as_bytes), and are
/// moved without packing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be moved between processes",
    label = "no `Equivalence`",
    note = "what can be moved: numbers of a fixed width (`u64` for `usize`), `bool`, `char`, arrays and tuples of such, and structs and enums without data with `#[derive(Equivalence)]`",
    note = "data that lives elsewhere (`String`, `Vec`, `Box`, references) cannot: move its contents as a slice; nor can an `Option`: write the value, and a `bool` that says whether it is there",
    note = "for a type parameter add a bound: `T: Equivalence`"
)]
pub trait Equivalence: Copy + Send + 'static {
    /// Bytes of a packed value.
    const PACKED_SIZE: usize;
    /// A hash of the structure: equal on two ranks exactly if their packed values mean the same.
    const FINGERPRINT: u64;

    /// Writes the value to `bytes`, which is [`PACKED_SIZE`](Self::PACKED_SIZE) long.
    ///
    /// # Panics
    ///
    /// When `bytes` has another length.
    fn pack(&self, bytes: &mut [u8]);

    /// Reads a value from `bytes`, which is [`PACKED_SIZE`](Self::PACKED_SIZE) long.
    ///
    /// # Errors
    ///
    /// [`InvalidValue`] when the bytes are no value of the type.
    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue>;

    /// The values as bytes, when their memory is their packed form.
    #[must_use]
    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        let _ = values;
        None
    }

    /// The values as bytes to write to, when their memory is their packed form and any bytes are values.
    #[must_use]
    fn as_bytes_mut(values: &mut [Self]) -> Option<&mut [u8]> {
        let _ = values;
        None
    }
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Equivalence for $type {
            const PACKED_SIZE: usize = size_of::<Self>();
            const FINGERPRINT: u64 = fingerprint_of_name(stringify!($type));

            fn pack(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(zerocopy::IntoBytes::as_bytes(self));
            }

            fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
                <Self as zerocopy::FromBytes>::read_from_bytes(bytes)
                    .map_err(|_| InvalidValue { type_name: stringify!($type), offset: bytes.len() })
            }

            fn as_bytes(values: &[Self]) -> Option<&[u8]> {
                Some(zerocopy::IntoBytes::as_bytes(values))
            }

            fn as_bytes_mut(values: &mut [Self]) -> Option<&mut [u8]> {
                Some(zerocopy::IntoBytes::as_mut_bytes(values))
            }
        }
    )*};
}

plain!(f64, f32, f16, bf16, F8E4m3, F8E5m2, i8, i16, i32, i64, u8, u16, u32, u64);

impl Equivalence for bool {
    const PACKED_SIZE: usize = 1;
    const FINGERPRINT: u64 = fingerprint_of_name("bool");

    fn pack(&self, bytes: &mut [u8]) {
        u8::from(*self).pack(bytes);
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(InvalidValue { type_name: "bool", offset: 0 }),
        }
    }
}

impl Equivalence for char {
    const PACKED_SIZE: usize = 4;
    const FINGERPRINT: u64 = fingerprint_of_name("char");

    fn pack(&self, bytes: &mut [u8]) {
        u32::from(*self).pack(bytes);
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        Self::from_u32(u32::unpack(bytes)?).ok_or(InvalidValue { type_name: "char", offset: 0 })
    }
}

impl<T: Send + 'static> Equivalence for PhantomData<T> {
    const PACKED_SIZE: usize = 0;
    const FINGERPRINT: u64 = fingerprint_of_name("nothing");

    fn pack(&self, _: &mut [u8]) {}

    fn unpack(_: &[u8]) -> Result<Self, InvalidValue> {
        Ok(Self)
    }
}

impl<T: Equivalence, const N: usize> Equivalence for [T; N] {
    const PACKED_SIZE: usize = N * T::PACKED_SIZE;
    const FINGERPRINT: u64 = Fingerprint::new().number(T::FINGERPRINT).number(N as u64).finish();

    fn pack(&self, bytes: &mut [u8]) {
        let mut offset = 0;
        for item in self {
            item.pack(pack_field(T::PACKED_SIZE, bytes, &mut offset));
        }
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        let mut offset = 0;
        let mut items = [None; N];
        for item in &mut items {
            *item = Some(unpack_field(T::PACKED_SIZE, T::unpack, bytes, &mut offset)?);
        }
        Ok(items.map(|item| item.expect("every item was just unpacked")))
    }

    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        T::as_bytes(values.as_flattened())
    }

    fn as_bytes_mut(values: &mut [Self]) -> Option<&mut [u8]> {
        T::as_bytes_mut(values.as_flattened_mut())
    }
}

/// A tuple is a struct whose fields are called `0`, `1`, ...
macro_rules! tuples {
    ($($count:literal: $($type:ident $index:tt),*;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($type: Equivalence),*> Equivalence for ($($type,)*) {
            const PACKED_SIZE: usize = 0 $(+ $type::PACKED_SIZE)*;
            const FINGERPRINT: u64 = Fingerprint::new()
                .number($count)
                $(.name(stringify!($index)).number($type::FINGERPRINT))*
                .finish();

            fn pack(&self, bytes: &mut [u8]) {
                let mut offset = 0;
                $(self.$index.pack(pack_field($type::PACKED_SIZE, bytes, &mut offset));)*
            }

            fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
                let mut offset = 0;
                Ok(($(unpack_field($type::PACKED_SIZE, $type::unpack, bytes, &mut offset)?,)*))
            }
        }
    )*};
}

tuples! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
    6: A 0, B 1, C 2, D 3, E 4, F 5;
    7: A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

/// The bytes of the next field: `size` of them at `offset`, which moves on.
#[doc(hidden)]
pub fn pack_field<'a>(size: usize, bytes: &'a mut [u8], offset: &mut usize) -> &'a mut [u8] {
    let start = *offset;
    *offset += size;
    &mut bytes[start..*offset]
}

/// The next field: `size` bytes at `offset`, which moves on.
#[doc(hidden)]
pub fn unpack_field<T>(
    size: usize,
    unpack: fn(&[u8]) -> Result<T, InvalidValue>,
    bytes: &[u8],
    offset: &mut usize,
) -> Result<T, InvalidValue> {
    let start = *offset;
    *offset += size;
    let short = InvalidValue { type_name: type_name::<T>(), offset: bytes.len() };
    unpack(bytes.get(start..*offset).ok_or(short)?)
        .map_err(|error| InvalidValue { offset: start + error.offset, ..error })
}

#[cfg(test)]
mod tests {
    use super::{Equivalence, InvalidValue};

    #[test]
    fn a_bool_is_checked() {
        for byte in 0..=u8::MAX {
            let expected = match byte {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(InvalidValue { type_name: "bool", offset: 0 }),
            };
            assert_eq!(bool::unpack(&[byte]), expected);
        }
    }

    #[test]
    fn a_char_is_checked() {
        for value in ['\0', 'ß', '\u{d7ff}', '\u{e000}', char::MAX] {
            let mut bytes = [0; 4];
            value.pack(&mut bytes);
            assert_eq!(bytes, u32::from(value).to_le_bytes());
            assert_eq!(char::unpack(&bytes), Ok(value));
        }
        for code in [0xd800, 0xdfff, 0x11_0000, u32::MAX] {
            let expected = InvalidValue { type_name: "char", offset: 0 };
            assert_eq!(char::unpack(&code.to_le_bytes()), Err(expected));
        }
        assert!(char::unpack(b"a").is_err());
    }

    #[test]
    fn a_tuple_is_its_fields() {
        let value = (1_u8, -2_i16, (true, 'x'));
        let mut bytes = [0; 8];
        value.pack(&mut bytes);
        assert_eq!(bytes, [1, 0xfe, 0xff, 1, b'x', 0, 0, 0]);
        assert_eq!(Equivalence::unpack(&bytes), Ok(value));
        bytes[3] = 2;
        let error = <(u8, i16, (bool, char))>::unpack(&bytes);
        assert_eq!(error, Err(InvalidValue { type_name: "bool", offset: 3 }));
        assert_ne!(<(u8, u8)>::FINGERPRINT, <[u8; 2]>::FINGERPRINT);
        assert_ne!(<(u8, (u8, u8))>::FINGERPRINT, <((u8, u8), u8)>::FINGERPRINT);
    }

    #[test]
    fn an_array_is_its_items() {
        let mut bytes = [0; 6];
        [3_u16, 4, 5].pack(&mut bytes);
        assert_eq!(bytes, [3, 0, 4, 0, 5, 0]);
        assert_eq!(<[u16; 3]>::unpack(&bytes), Ok([3, 4, 5]));
        assert_eq!(<[bool; 3]>::unpack(&[1, 0, 7]), Err(InvalidValue { type_name: "bool", offset: 2 }));
        assert_eq!(<[bool; 3]>::unpack(&[1, 0]), Err(InvalidValue { type_name: "bool", offset: 2 }));
        assert_eq!(<[bool; 0]>::unpack(&[]), Ok([]));
        assert_eq!(<[u16; 2]>::as_bytes(&[[1, 2], [3, 4]]), Some(&[1, 0, 2, 0, 3, 0, 4, 0][..]));
        assert_eq!(<[bool; 2]>::as_bytes(&[[true, false]]), None);
    }
}
