//! Extremes with the place where they were found.

use super::builtin::reduction;
use super::{OperationId, Properties, Reduction};
use crate::gradient::StaticReduction;
use crate::layout::Fingerprint;
use crate::reduce::Kernel;
use crate::{Element, Equivalence, InvalidValue};
use std::fmt;
use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The smallest value and its index. Of equal values the one with the lower index is chosen, NaN wins over numbers,
/// and -0 is smaller than +0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MinLoc;

/// The largest value and its index. Of equal values the one with the lower index is chosen, NaN wins over numbers,
/// and +0 is larger than -0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MaxLoc;

/// A value and an index as wide as the value (`u32` beside an `f32`), so that there is no padding between them.
/// The operand of [`MinLoc`] and [`MaxLoc`].
///
/// ```
/// use gradwire_schema::operation::{Located, MaxLoc};
/// use gradwire_schema::Reduction;
///
/// let mut best = [Located::new(2.5_f32, 0)];
/// MaxLoc.combine(&mut best, &[Located::new(7.0, 1)]);
/// assert_eq!((best[0].value(), best[0].index()), (7.0, 1));
/// ```
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Located<V: Element> {
    /// The bits of the value, then the index.
    pair: [V::Bits; 2],
    value: PhantomData<V>,
}

impl<V: Element> Located<V> {
    /// A value with its index.
    #[must_use]
    pub fn new(value: V, index: V::Bits) -> Self {
        Self { pair: [value.into_raw_bits(), index], value: PhantomData }
    }

    /// The value.
    #[must_use]
    pub fn value(self) -> V {
        V::from_raw_bits(self.pair[0])
    }

    /// The index.
    #[must_use]
    pub fn index(self) -> V::Bits {
        self.pair[1]
    }

    /// Whether the bits of the values are the same.
    pub(crate) fn has_same_value(self, other: Self) -> bool {
        self.pair[0] == other.pair[0]
    }
}

impl<V: Element> PartialEq for Located<V> {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value() && self.index() == other.index()
    }
}

impl<V: Element + fmt::Debug> fmt::Debug for Located<V>
where
    V::Bits: fmt::Debug,
{
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at {:?}", self.value(), self.index())
    }
}

impl<V: Element> Equivalence for Located<V> {
    const PACKED_SIZE: usize = size_of::<Self>();
    const FINGERPRINT: u64 = Fingerprint::new().name("Located").number(V::FINGERPRINT).finish();

    fn pack(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(IntoBytes::as_bytes(self));
    }

    fn unpack(bytes: &[u8]) -> Result<Self, InvalidValue> {
        Self::read_from_bytes(bytes).map_err(|_| InvalidValue { type_name: "Located", offset: bytes.len() })
    }

    fn as_bytes(values: &[Self]) -> Option<&[u8]> {
        Some(IntoBytes::as_bytes(values))
    }

    fn as_bytes_mut(values: &mut [Self]) -> Option<&mut [u8]> {
        Some(IntoBytes::as_mut_bytes(values))
    }
}

reduction! {
    <V: Element> MinLoc on Located<V>, in Located<V>, 6, "min_loc", exact: true;
    <V: Element> MaxLoc on Located<V>, in Located<V>, 7, "max_loc", exact: true;
}
