//! Data that can be moved.

use crate::{F8E4m3, F8E5m2};
use half::{bf16, f16};

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
pub trait Equivalence: Copy + Send + 'static {
    /// Bytes of a packed value.
    const PACKED_SIZE: usize;
    /// A hash of the structure: equal on two ranks exactly if their packed values mean the same.
    const FINGERPRINT: u64;

    /// Writes the value to `bytes`, which is [`PACKED_SIZE`](Self::PACKED_SIZE) long.
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
            const FINGERPRINT: u64 = crate::layout::fingerprint_of_name(stringify!($type));

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
