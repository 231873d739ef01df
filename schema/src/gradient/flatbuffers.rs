//! A layout as a FlatBuffers schema: a table for each struct, a vector or a number for each tensor.
//!
//! It says the same as the layout in a language that peers in C++, Python and others can compile. The bytes of
//! [`encode`](super::Gradient::encode) are no FlatBuffer: a comment in the text tells how to read those.

use crate::layout::{Field, FieldKind, Tensor};
use crate::{Datatype, Layout};
use std::fmt::Write;

pub(super) fn schema(layout: &'static Layout) -> String {
    let mut schema = Schema { tables: Vec::new() };
    let root = schema.table(layout);
    let mut text = format!(
        "// Gradwire wire format 1, layout {:#018x}.\n\
         // A gradient on the wire is 64 bytes of header, {} run-time lengths (uint64), then its tensors in the order\n\
         // of the root table's fields, nested tables in place. All is little endian; each part starts at a multiple of 64 bytes.\n",
        layout.fingerprint, layout.run_time_lengths
    );
    for table in &schema.tables {
        text.push('\n');
        text.push_str(&table.text);
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "\nroot_type {root};\n");
    text
}

/// The tables so far, inner ones first.
struct Schema {
    tables: Vec<Table>,
}

struct Table {
    layout: &'static Layout,
    name: String,
    text: String,
}

impl Schema {
    /// The name of a struct's table.
    fn table(&mut self, layout: &'static Layout) -> String {
        if let Some(table) = self.tables.iter().find(|table| table.layout == layout) {
            return table.name.clone();
        }
        let mut fields = String::new();
        let mut names = Vec::new();
        for field in layout.fields {
            let name = unused(identifier(field.name), &names);
            let described = self.field(field, &name);
            fields.push_str(&described);
            names.push(name);
        }
        // Structs of one name with other contents: generic ones, or from other modules.
        let taken: Vec<_> = self.tables.iter().map(|table| table.name.clone()).collect();
        let name = unused(identifier(layout.name), &taken);
        let text = format!("table {name} {{\n{fields}}}\n");
        self.tables.push(Table { layout, name: name.clone(), text });
        name
    }

    fn field(&mut self, field: &Field, name: &str) -> String {
        let original = if name == field.name { String::new() } else { format!("{:?}: ", field.name) };
        match &field.kind {
            FieldKind::Nested(layout) => {
                let table = self.table(layout);
                let comment =
                    if original.is_empty() { original } else { format!("  /// {original}nested\n") };
                format!("{comment}  {name}: {table};\n")
            }
            FieldKind::Tensor(tensor) => {
                format!("  /// {original}{}\n  {name}: {};\n", comment(tensor), type_name(tensor))
            }
        }
    }
}

/// `f32 [n, 64], reduced by average, travels as bf16`.
fn comment(tensor: &Tensor) -> String {
    let mut extents: Vec<_> = tensor.shape.iter().map(ToString::to_string).collect();
    if tensor.run_time_length {
        extents.insert(0, "n".to_owned());
    }
    let mut comment = tensor.datatype.name().to_owned();
    if !extents.is_empty() {
        let _ = write!(comment, " [{}]", extents.join(", "));
    }
    let _ = write!(comment, ", reduced by {}", tensor.operation_name);
    if tensor.wire != tensor.datatype {
        let _ = write!(comment, ", travels as {}", tensor.wire.name());
    }
    comment
}

/// A number for a scalar, a vector for everything else. Formats that FlatBuffers lacks appear as their bits.
fn type_name(tensor: &Tensor) -> String {
    let number = match tensor.datatype {
        Datatype::F64 => "double",
        Datatype::F32 => "float",
        Datatype::F16 | Datatype::Bf16 | Datatype::U16 => "uint16",
        Datatype::F8E4m3 | Datatype::F8E5m2 | Datatype::U8 => "uint8",
        Datatype::I8 => "int8",
        Datatype::I16 => "int16",
        Datatype::I32 => "int32",
        Datatype::I64 => "int64",
        Datatype::U32 => "uint32",
        Datatype::U64 => "uint64",
    };
    if tensor.shape.is_empty() && !tensor.run_time_length { number.to_owned() } else { format!("[{number}]") }
}

/// A name that FlatBuffers accepts.
fn identifier(name: &str) -> String {
    let mut identifier: String = name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
        .collect();
    if identifier.starts_with(|first: char| first.is_ascii_digit()) {
        identifier.insert_str(0, "field_");
    }
    if RESERVED.contains(&identifier.as_str()) {
        identifier.push('_');
    }
    identifier
}

/// The words of the schema language, and those of languages generated from it that cannot be a field's name.
const RESERVED: [&str; 32] = [
    "attribute",
    "bool",
    "byte",
    "double",
    "enum",
    "false",
    "file_extension",
    "file_identifier",
    "float",
    "float32",
    "float64",
    "include",
    "inf",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "long",
    "namespace",
    "native_include",
    "null",
    "root_type",
    "rpc_service",
    "short",
    "string",
    "struct",
    "table",
    "true",
    "ubyte",
    "uint",
    "union",
];

fn unused(name: String, taken: &[String]) -> String {
    if !taken.contains(&name) {
        return name;
    }
    (2_u64..).map(|number| format!("{name}_{number}")).find(|name| !taken.contains(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{identifier, unused};

    #[test]
    fn names_become_identifiers() {
        assert_eq!(identifier("layer.0.weight"), "layer_0_weight");
        assert_eq!(identifier("0"), "field_0");
        assert_eq!(identifier("table"), "table_");
        assert_eq!(unused("a".to_owned(), &["a".to_owned(), "a_2".to_owned()]), "a_3");
    }
}
