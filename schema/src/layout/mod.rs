//! Layouts: what a `Gradient` struct is made of, as a tree of static references.
//!
//! [`Checked`] holds a visit to the layout; [`for_each_length`] tells what the layout leaves open.

mod checked;
mod fingerprint;
mod lengths;

pub use checked::{CheckError, Checked, LayoutError, MAX_DEPTH};
pub use fingerprint::{Fingerprint, fingerprint_of_name};
pub use lengths::for_each_length;

use crate::{Datatype, OperationId};

/// The layout of a struct. A fingerprint is folded over the whole tree.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// The struct's name. Not part of the fingerprint: renaming a type changes no byte.
    pub name: &'static str,
    /// Its fields in the order of declaration, skipped ones left out.
    pub fields: &'static [Field],
    /// The hash of names, datatypes, shapes, operations and wire types of all fields, nested ones included.
    pub fingerprint: u64,
    /// How many tensors it has, nested ones included.
    pub tensors: usize,
    /// How many of them have a length known at run time only.
    pub run_time_lengths: usize,
    /// The most slices it takes on the wire: the prefix, each tensor, and padding where a tensor may need it.
    pub parts: usize,
}

impl Layout {
    /// The layout of a struct with these fields.
    #[must_use]
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        let mut fingerprint = Fingerprint::new().number(fields.len() as u64);
        let mut tensors = 0;
        let mut run_time_lengths = 0;
        let mut parts = 1;
        let mut index = 0;
        while index < fields.len() {
            fingerprint = fields[index].fold(fingerprint);
            match &fields[index].kind {
                FieldKind::Tensor(tensor) => {
                    tensors += 1;
                    run_time_lengths += tensor.run_time_length as usize;
                    parts += 1 + tensor.may_be_padded() as usize;
                }
                FieldKind::Nested(layout) => {
                    tensors += layout.tensors;
                    run_time_lengths += layout.run_time_lengths;
                    parts += layout.parts - 1;
                }
            }
            index += 1;
        }
        Self { name, fields, fingerprint: fingerprint.finish(), tensors, run_time_lengths, parts }
    }
}

/// A field of a layout.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it is.
    pub kind: FieldKind,
}

impl Field {
    const fn fold(&self, fingerprint: Fingerprint) -> Fingerprint {
        let fingerprint = fingerprint.name(self.name);
        match &self.kind {
            FieldKind::Tensor(tensor) => tensor.fold(fingerprint.number(1)),
            FieldKind::Nested(layout) => fingerprint.number(2).number(layout.fingerprint),
        }
    }
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
    /// The operation's name, for messages. Not part of the fingerprint.
    pub operation_name: &'static str,
    /// The extents known at compile time, outermost first. For a run-time length the outermost extent is missing
    /// here, and these are those of one item.
    pub shape: &'static [usize],
    /// Whether the outermost extent is known at run time only.
    pub run_time_length: bool,
}

impl Tensor {
    /// Elements of one item where the length is known at run time only, else of the whole tensor.
    #[must_use]
    pub const fn elements(&self) -> usize {
        let mut elements = 1;
        let mut index = 0;
        while index < self.shape.len() {
            elements = usize::saturating_mul(elements, self.shape[index]);
            index += 1;
        }
        elements
    }

    /// Whether it may end elsewhere than at a multiple of 64 bytes.
    const fn may_be_padded(&self) -> bool {
        !self.elements().wrapping_mul(self.datatype.size()).is_multiple_of(64)
    }

    const fn fold(&self, fingerprint: Fingerprint) -> Fingerprint {
        let mut fingerprint = fingerprint
            .number(self.datatype.code() as u64)
            .number(self.wire.code() as u64)
            .number(self.operation.0)
            .number(self.run_time_length as u64)
            .number(self.shape.len() as u64);
        let mut index = 0;
        while index < self.shape.len() {
            fingerprint = fingerprint.number(self.shape[index] as u64);
            index += 1;
        }
        fingerprint
    }
}
