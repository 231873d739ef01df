//! Call signatures: what the ranks of a communicator must agree on before a byte of a call's data is used.

mod collective;
mod digest;
mod table;

pub use collective::Collective;
pub use digest::LayoutDigest;
pub use table::{MismatchTable, TableError};

use crate::{Datatype, OperationId, UnknownCode};
use std::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// What a rank called. Two ranks may exchange data only if their signatures are equal.
///
/// Its place in the order of calls is not part of it: the frame header carries communicator, epoch and sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallSignature {
    /// Which call.
    pub collective: Collective,
    /// The elements' format; `None` where there are no elements, where a derived `Equivalence` is moved, or where the
    /// fields of a struct have formats of their own. [`layout`](Self::layout) tells those apart.
    pub datatype: Option<Datatype>,
    /// The root, in calls that have one.
    pub root: Option<u32>,
    /// The operation; `None` in calls that reduce nothing, and where the fields of a struct have operations of their
    /// own.
    pub operation: Option<OperationId>,
    /// Elements contributed by each rank.
    pub count: u64,
    /// The bucket's identity; 0 for calls on plain slices.
    pub bucket: u64,
    /// The fingerprint of the elements' type, or a struct's [`LayoutDigest`]; 0 for plain elements. Where ranks have
    /// counts of their own, the digest of the type and all counts.
    pub layout: u64,
}

/// As it travels: 40 bytes, little endian, without padding.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Wire {
    collective: u8,
    datatype: u8,
    reserved: u16,
    root: u32,
    operation: u64,
    count: u64,
    bucket: u64,
    layout: u64,
}

const _: () = assert!(size_of::<Wire>() == CallSignature::LEN);

/// The datatype code of data that is not of one [`Datatype`].
const NO_DATATYPE: u8 = 0;
/// The operation of calls that have none: the codes of operations begin at 1.
const NO_OPERATION: u64 = 0;
/// The root of calls that have none.
const NO_ROOT: u32 = u32::MAX;

/// Why bytes are no signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A code that this version knows no meaning for.
    #[error(transparent)]
    Unknown(#[from] UnknownCode),
    /// Bytes that must be 0 are not.
    #[error(
        "the reserved bytes of a call signature hold {0:#06x}: the sender runs a newer version of gradwire"
    )]
    Reserved(u16),
}

impl CallSignature {
    /// Bytes of an encoded signature.
    pub const LEN: usize = 40;

    /// A call without data.
    #[must_use]
    pub const fn new(collective: Collective) -> Self {
        Self { collective, datatype: None, root: None, operation: None, count: 0, bucket: 0, layout: 0 }
    }

    /// The bytes to send.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        transmute!(self.wire())
    }

    /// Reads a signature.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] for codes of another version.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<Self, SignatureError> {
        let wire: Wire = transmute!(*bytes);
        if wire.reserved != 0 {
            return Err(SignatureError::Reserved(wire.reserved));
        }
        Ok(Self {
            collective: Collective::from_code(wire.collective)?,
            datatype: match wire.datatype {
                NO_DATATYPE => None,
                code => Some(Datatype::from_code(code)?),
            },
            root: (wire.root != NO_ROOT).then_some(wire.root),
            operation: (wire.operation != NO_OPERATION).then_some(OperationId(wire.operation)),
            count: wire.count,
            bucket: wire.bucket,
            layout: wire.layout,
        })
    }

    /// The signature in 64 bits, for the frame header.
    ///
    /// Signatures whose encodings differ in only one of their five words never share a hash; others do with
    /// probability 2⁻⁶⁴. It guards against mistakes, not against forgery: peers prove membership beforehand.
    #[must_use]
    #[inline]
    pub fn hash(&self) -> u64 {
        digest::hash_words(transmute!(self.wire()))
    }

    /// For messages.
    #[must_use]
    pub const fn describe(&self) -> Description<'_> {
        Description(self)
    }

    #[inline]
    fn wire(&self) -> Wire {
        Wire {
            collective: self.collective.code(),
            datatype: self.datatype.map_or(NO_DATATYPE, Datatype::code),
            reserved: 0,
            root: self.root.unwrap_or(NO_ROOT),
            operation: self.operation.map_or(NO_OPERATION, |operation| operation.0),
            count: self.count,
            bucket: self.bucket,
            layout: self.layout,
        }
    }
}

/// The arguments of a call as text: `sum, f32 x 12, root 0`.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a>(&'a CallSignature);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(call) = self;
        let mut separator = "";
        let mut piece = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            f.write_str(separator)?;
            separator = ", ";
            f.write_fmt(text)
        };
        if let Some(operation) = call.operation {
            piece(f, format_args!("{operation}"))?;
        }
        match (call.datatype, call.layout) {
            (Some(datatype), 0) => piece(f, format_args!("{} x {}", datatype.name(), call.count))?,
            (Some(datatype), counts) => {
                piece(f, format_args!("{} x {}, counts {counts:016x}", datatype.name(), call.count))?;
            }
            (None, group) if call.collective == Collective::CreateGroup => {
                piece(f, format_args!("group {group:016x} of {} ranks", call.count))?;
            }
            (None, 0) if call.count == 0 => {}
            (None, 0) => piece(f, format_args!("{} elements", call.count))?,
            (None, layout) => piece(f, format_args!("layout {layout:016x} x {}", call.count))?,
        }
        if let Some(root) = call.root {
            piece(f, format_args!("root {root}"))?;
        }
        if call.bucket != 0 {
            piece(f, format_args!("bucket {:016x}", call.bucket))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
