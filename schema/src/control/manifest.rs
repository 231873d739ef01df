//! Manifests: what a struct of tensors is made of on one rank, to find out where two ranks differ.

use super::envelope::{Builder, open, seal, unexpected};
use super::reader::Reader;
use super::{ControlError, limits, wire};
use crate::layout::{Field, FieldKind, LayoutError, Tensor, for_each_length};
use crate::{Datatype, Gradient, Layout, OperationId};
use flatbuffers::WIPOffset;

/// What a struct of tensors is made of, with its run-time lengths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorManifest {
    /// The struct's name, for messages.
    pub name: String,
    /// Its layout's fingerprint.
    pub fingerprint: u64,
    /// Its tensors in layout order, those of nested structs among them.
    pub fields: Vec<TensorField>,
}

/// A tensor of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorField {
    /// Its name; in nested structs with the path: `head.weight`.
    pub name: String,
    /// The format in memory.
    pub datatype: Datatype,
    /// The format on the wire.
    pub wire: Datatype,
    /// The operation that reduces it.
    pub operation: OperationId,
    /// The operation's name, for messages.
    pub operation_name: String,
    /// Its extents, outermost first.
    pub extents: Vec<u64>,
    /// Whether the outermost extent is not part of the type.
    pub run_time_length: bool,
}

/// Not as many lengths as the layout leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a layout with {expected} run-time lengths was given {found}")]
pub struct WrongLengths {
    /// As many as there must be.
    pub expected: usize,
    /// As many as there were.
    pub found: usize,
}

impl TensorManifest {
    /// The manifest of `layout` with these run-time lengths, in layout order.
    ///
    /// # Errors
    ///
    /// [`WrongLengths`] when there are more or fewer than the layout leaves open.
    pub fn from_layout(layout: &Layout, lengths: &[u64]) -> Result<Self, WrongLengths> {
        let wrong = WrongLengths { expected: layout.run_time_lengths, found: lengths.len() };
        let mut fields = Vec::with_capacity(layout.tensors);
        let mut lengths = lengths.iter().copied();
        walk(layout, "", &mut |name, tensor| {
            fields.push(TensorField::new(name, tensor, &mut lengths).ok_or(wrong)?);
            Ok(())
        })?;
        if lengths.next().is_some() {
            return Err(wrong);
        }
        Ok(Self { name: layout.name.to_owned(), fingerprint: layout.fingerprint, fields })
    }

    /// The manifest of `gradient` as it is now.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] when a gradient written by hand does not keep to its layout.
    pub fn of<G: Gradient>(gradient: &mut G) -> Result<Self, LayoutError> {
        let mut lengths = Vec::with_capacity(G::LAYOUT.run_time_lengths);
        for_each_length(gradient, |length| lengths.push(length))?;
        // A visit that keeps to the layout shows as many lengths as the layout has.
        Self::from_layout(G::LAYOUT, &lengths).map_err(|_| LayoutError::Missing { field: G::LAYOUT.name })
    }

    /// Says where `self` and `other` begin to differ: `field w2: extents [10, 4] against [12, 4]`. `None` when they
    /// do not.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        let pairs = self.fields.iter().zip(&other.fields);
        if let Some(difference) = pairs.into_iter().find_map(|(a, b)| a.difference(b)) {
            return Some(difference);
        }
        let (ours, theirs) = (self.fields.len(), other.fields.len());
        let longer = if ours > theirs { &self.fields } else { &other.fields };
        if let Some(extra) = longer.get(ours.min(theirs)) {
            return Some(format!("field {}: only one of them has it", extra.name));
        }
        (self.fingerprint != other.fingerprint)
            .then(|| format!("structs {} and {}: fields nested differently", self.name, other.name))
    }

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        seal(|builder| {
            let fields: Vec<_> = self.fields.iter().map(|field| field.write(builder)).collect();
            let args = wire::TensorManifestArgs {
                name: Some(builder.create_string(&self.name)),
                fingerprint: self.fingerprint,
                fields: Some(builder.create_vector(&fields)),
            };
            (wire::Body::TensorManifest, wire::TensorManifest::create(builder, &args).as_union_value())
        })
    }

    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// [`ControlError`], by the first thing that is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Self, ControlError> {
        let (message, bytes) = open(bytes)?;
        let manifest =
            message.body_as_tensor_manifest().ok_or_else(|| unexpected("TensorManifest", message))?;
        let mut reader = Reader::new(bytes);
        Ok(Self {
            name: reader.text("name", manifest.name(), limits::TEXT)?,
            fingerprint: manifest.fingerprint(),
            fields: reader.entries("fields", manifest.fields(), limits::FIELDS, TensorField::read)?,
        })
    }
}

/// Shows every tensor with its path.
fn walk<E>(
    layout: &Layout,
    path: &str,
    see: &mut impl FnMut(String, &Tensor) -> Result<(), E>,
) -> Result<(), E> {
    for Field { name, kind } in layout.fields {
        match kind {
            FieldKind::Tensor(tensor) => see(format!("{path}{name}"), tensor)?,
            FieldKind::Nested(layout) => walk(layout, &format!("{path}{name}."), see)?,
        }
    }
    Ok(())
}

impl TensorField {
    /// Takes a length where the tensor has one. `None` when they have run out.
    fn new(name: String, tensor: &Tensor, lengths: &mut impl Iterator<Item = u64>) -> Option<Self> {
        let outermost = if tensor.run_time_length { Some(lengths.next()?) } else { None };
        Some(Self {
            name,
            datatype: tensor.datatype,
            wire: tensor.wire,
            operation: tensor.operation,
            operation_name: tensor.operation_name.to_owned(),
            extents: outermost.into_iter().chain(tensor.shape.iter().map(|extent| *extent as u64)).collect(),
            run_time_length: tensor.run_time_length,
        })
    }

    fn difference(&self, other: &Self) -> Option<String> {
        let Self { name, .. } = self;
        if *name != other.name {
            return Some(format!("field {name} against {}", other.name));
        }
        if self.datatype != other.datatype {
            return Some(format!("field {name}: {} against {}", self.datatype.name(), other.datatype.name()));
        }
        if self.extents != other.extents {
            return Some(format!("field {name}: extents {:?} against {:?}", self.extents, other.extents));
        }
        if self.operation != other.operation {
            return Some(format!(
                "field {name}: reduced by {} against {}",
                self.operation_name, other.operation_name
            ));
        }
        if self.wire != other.wire {
            return Some(format!(
                "field {name}: travels as {} against {}",
                self.wire.name(),
                other.wire.name()
            ));
        }
        (self.run_time_length != other.run_time_length)
            .then(|| format!("field {name}: its length is known at run time only, on one of them"))
    }

    fn write<'a>(&self, builder: &mut Builder) -> WIPOffset<wire::TensorField<'a>> {
        let args = wire::TensorFieldArgs {
            name: Some(builder.create_string(&self.name)),
            datatype: self.datatype.code(),
            wire: self.wire.code(),
            operation: self.operation.0,
            operation_name: Some(builder.create_string(&self.operation_name)),
            extents: Some(builder.create_vector(&self.extents)),
            run_time_length: self.run_time_length,
        };
        wire::TensorField::create(builder, &args)
    }

    fn read(reader: &mut Reader, field: wire::TensorField<'_>) -> Result<Self, ControlError> {
        Ok(Self {
            name: reader.text("name", field.name(), limits::TEXT)?,
            datatype: Datatype::from_code(field.datatype())?,
            wire: Datatype::from_code(field.wire())?,
            operation: OperationId(field.operation()),
            operation_name: reader.text("operation_name", field.operation_name(), limits::TEXT)?,
            extents: reader.numbers("extents", field.extents(), limits::EXTENTS)?,
            run_time_length: field.run_time_length(),
        })
    }
}
