//! What cannot be reduced.

use super::{bounded, machine_sized, standard};
use crate::mistakes::Mistakes;
use crate::model::{Gradient, Shape};
use std::collections::HashMap;
use syn::{GenericArgument, Ident, Path, PathArguments, Type, TypeArray, TypeSlice};

pub(crate) fn gradient(model: &Gradient<'_>, mistakes: &mut Mistakes) {
    has_fields(model, mistakes);
    names_differ(model, mistakes);
    if let Some(packed) = model.packed {
        let message = "the tensors of a packed struct cannot be borrowed, and each is aligned on the wire anyway: remove `packed`";
        mistakes.add(syn::Error::new(packed, message));
    }
    for field in &model.fields {
        ty(field.ty, model.name, mistakes);
        let bounds = "write `T: Element` or `T: Float` for numbers, `T: Gradient` for a struct";
        bounded(field.ty, model.generics, bounds, mistakes);
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
fn ty(ty: &Type, structure: &Ident, mistakes: &mut Mistakes) {
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
        Type::BareFn(_) => mistakes.at(ty, CODE),
        Type::Group(group) => self::ty(&group.elem, structure, mistakes),
        Type::Paren(paren) => self::ty(&paren.elem, structure, mistakes),
        Type::Array(array) => match innermost(&array.elem) {
            Type::Path(path) if instead(&path.path).is_some() => {
                mistakes.at(ty, instead(&path.path).unwrap_or_default());
            }
            _ => machine_sized(&array.elem, mistakes),
        },
        Type::Path(path) => match instead(&path.path) {
            Some(message) => mistakes.at(ty, message),
            None if is_itself(ty, structure) => {
                let message = format_args!(
                    "a layout within itself would have no end: keep each `{structure}` in a variable of its own, or write its tensors as one with an extent more, `Vec<[f32; N]>`"
                );
                mistakes.at(ty, message);
            }
            None => machine_sized(ty, mistakes),
        },
        _ => {}
    }
}

const CODE: &str = "code cannot be reduced: put `#[gradient(skip)]` on the field";

/// What to write instead of a type of the standard library that is no tensor, nor holds one where it may lie.
fn instead(path: &Path) -> Option<&'static str> {
    let (name, is_generic) = standard(path)?;
    Some(match (name.as_str(), item(path).map(innermost)) {
        ("bool", _) => {
            "a `bool` has no sum: write `u8` with `#[gradient(reduce = LogicalOr)]` or `LogicalAnd`"
        }
        ("String" | "char" | "str", _) => "text cannot be reduced: put `#[gradient(skip)]` on the field",
        ("Option", _) if is_generic => {
            "every rank has every tensor: write the tensor itself, zero or an empty `Vec` on all ranks for nothing"
        }
        ("Rc" | "Arc" | "Cow", _) if is_generic => {
            "a gradient owns its tensors, to reduce them in place: write `Vec<f32>` or `Box<[f32]>`"
        }
        ("Mutex" | "RwLock" | "RefCell" | "Cell", _) if is_generic => {
            "a gradient owns its tensors, and is borrowed whole for a call: write the contents alone, and the lock around the struct"
        }
        ("Box", Some(Type::TraitObject(_))) => CODE,
        ("Vec" | "Box", Some(Type::Path(item))) if !is_list(&item.path) => return instead(&item.path),
        _ => return None,
    })
}

/// A list within a list has a message of its own, from the bounds.
fn is_list(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| last.ident == "Vec" || last.ident == "Box")
}

/// What arrays and slices are made of.
fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::Array(TypeArray { elem, .. }) | Type::Slice(TypeSlice { elem, .. }) => innermost(elem),
        Type::Group(group) => innermost(&group.elem),
        _ => ty,
    }
}

/// Whether the type is, or is a list of, the struct that it is a field of.
fn is_itself(ty: &Type, structure: &Ident) -> bool {
    let Type::Path(path) = innermost(ty) else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    if path.path.segments.len() == 1 && (last.ident == *structure || last.ident == "Self") {
        return true;
    }
    match item(&path.path) {
        Some(item) if is_list(&path.path) => is_itself(item, structure),
        _ => false,
    }
}

/// The first type argument.
fn item(path: &Path) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &path.segments.last()?.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(item) => Some(item),
        _ => None,
    }
}
