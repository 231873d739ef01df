//! Layouts: what a `Gradient` struct is made of, as a tree of static references.

use crate::{Datatype, OperationId};

/// The layout of a struct. A fingerprint is folded over the whole tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The struct's name. Not part of the fingerprint: renaming a type changes no byte.
    pub name: &'static str,
    /// Its fields in the order of declaration, skipped ones left out.
    pub fields: &'static [Field],
    /// The hash of names, datatypes, shapes, operations and wire types of all fields, nested ones included.
    pub fingerprint: u64,
}

/// A field of a layout.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it is.
    pub kind: FieldKind,
}

/// What a field is.
#[derive(Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Numbers.
    Tensor(Tensor),
    /// A struct of its own.
    Nested(&'static Layout),
}

/// A tensor field.
#[derive(Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The format in memory.
    pub datatype: Datatype,
    /// The format on the wire.
    pub wire: Datatype,
    /// The operation that reduces it.
    pub operation: OperationId,
    /// The extents known at compile time, outermost first. For a run-time length the outermost extent is missing
    /// here, and these are those of one item.
    pub shape: &'static [usize],
    /// Whether the outermost extent is known at run time only.
    pub run_time_length: bool,
}

/// The hash of a name: FNV-1a, 64 bits.
#[must_use]
pub const fn fingerprint_of_name(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        index += 1;
    }
    hash
}
