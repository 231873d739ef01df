//! Finds what cannot work, as far as names and syntax tell.

use crate::mistakes::Mistakes;
use crate::model::{Equivalence, Gradient, Shape};
use std::collections::HashMap;
use syn::{GenericArgument, PathArguments, Type};

pub(crate) fn gradient(model: &Gradient<'_>, mistakes: &mut Mistakes) {
    has_fields(model, mistakes);
    names_differ(model, mistakes);
    for field in &model.fields {
        ty(field.ty, mistakes);
    }
}

pub(crate) fn equivalence(model: &Equivalence<'_>, mistakes: &mut Mistakes) {
    for (_, _, ty) in &model.fields {
        match ty {
            Type::Reference(_) | Type::Ptr(_) => mistakes.at(
                ty,
                "an address means nothing to another process: write the value itself, or an array of them",
            ),
            _ => machine_sized(ty, mistakes),
        }
    }
}

fn has_fields(model: &Gradient<'_>, mistakes: &mut Mistakes) {
    if model.fields.is_empty() {
        let instead = match model.shape {
            Shape::Unit => "give it fields: `struct Name { weight: Vec<f32> }`",
            Shape::Named | Shape::Tuple => "give it a field that is not skipped",
        };
        mistakes.at(model.name, format_args!("`{}` has no tensors to reduce: {instead}", model.name));
    }
}

fn names_differ(model: &Gradient<'_>, mistakes: &mut Mistakes) {
    let mut seen = HashMap::new();
    for field in &model.fields {
        if field.name.is_empty() {
            mistakes.add(syn::Error::new(field.name_span, "a name has at least one character"));
        }
        if let Some(first) = seen.insert(&field.name, field.name_span) {
            let message =
                format!("two fields are called `{}` on the wire: give one another `rename`", field.name);
            let mut mistake = syn::Error::new(field.name_span, message);
            mistake.combine(syn::Error::new(first, "the other one"));
            mistakes.add(mistake);
        }
    }
}

/// Types that no trait could explain as well.
fn ty(ty: &Type, mistakes: &mut Mistakes) {
    match ty {
        Type::Reference(reference) => {
            let message = match &*reference.elem {
                Type::Slice(_) | Type::Path(_) | Type::Array(_) => {
                    "a gradient owns its tensors: write `Vec<f32>`, `Box<[f32]>` or `[f32; N]` for a reference"
                }
                _ => "a gradient owns its tensors: write an owned type for the reference",
            };
            mistakes.at(reference, message);
        }
        Type::Ptr(pointer) => {
            mistakes
                .at(pointer, "a gradient owns its tensors: write `Vec<f32>` or `Box<[f32]>` for the pointer");
        }
        Type::Tuple(tuple) => {
            mistakes
                .at(tuple, "a tuple has no names for its tensors: write a struct with `#[derive(Gradient)]`");
        }
        Type::Slice(slice) => {
            mistakes.at(slice, "a tensor needs a home: write `Box<[T]>` or `Vec<T>` for `[T]`");
        }
        Type::Group(group) => self::ty(&group.elem, mistakes),
        Type::Paren(paren) => self::ty(&paren.elem, mistakes),
        Type::Array(array) => machine_sized(&array.elem, mistakes),
        Type::Path(_) => machine_sized(ty, mistakes),
        _ => {}
    }
}

/// `usize` inside a tensor.
fn machine_sized(ty: &Type, mistakes: &mut Mistakes) {
    match ty {
        Type::Group(group) => machine_sized(&group.elem, mistakes),
        Type::Array(array) => machine_sized(&array.elem, mistakes),
        Type::Slice(slice) => machine_sized(&slice.elem, mistakes),
        Type::Path(path) => {
            for (machine, fixed) in [("usize", "u64"), ("isize", "i64")] {
                if path.path.is_ident(machine) {
                    let message =
                        format_args!("`{machine}` is not as wide on every machine: write `{fixed}`");
                    mistakes.at(path, message);
                }
            }
            let Some(last) = path.path.segments.last() else { return };
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return };
            if last.ident == "Vec" || last.ident == "Box" {
                for argument in &arguments.args {
                    if let GenericArgument::Type(item) = argument {
                        machine_sized(item, mistakes);
                    }
                }
            }
        }
        _ => {}
    }
}
