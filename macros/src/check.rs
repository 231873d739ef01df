//! Finds what cannot work, as far as names and syntax tell.

mod equivalence;

pub(crate) use equivalence::equivalence;

use crate::mistakes::Mistakes;
use crate::model::{Gradient, Shape};
use std::collections::HashMap;
use syn::{GenericArgument, Generics, PathArguments, Type, TypeParam, WherePredicate};

pub(crate) fn gradient(model: &Gradient<'_>, mistakes: &mut Mistakes) {
    has_fields(model, mistakes);
    names_differ(model, mistakes);
    for field in &model.fields {
        ty(field.ty, mistakes);
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

/// A type parameter that a field holds has some bound: without one it is nothing that a field can be.
fn bounded(ty: &Type, generics: &Generics, bounds: &str, mistakes: &mut Mistakes) {
    let Some(parameter) = parameter(ty, generics) else { return };
    let in_where_clause =
        generics.where_clause.iter().flat_map(|clause| &clause.predicates).any(|predicate| {
            let WherePredicate::Type(predicate) = predicate else { return false };
            matches!(&predicate.bounded_ty, Type::Path(path) if path.path.is_ident(&parameter.ident))
        });
    if parameter.bounds.is_empty() && !in_where_clause {
        let bounds = bounds.replace("`T:", &format!("`{}:", parameter.ident));
        mistakes
            .at(ty, format_args!("`{}` could be any type: {bounds} where it is declared", parameter.ident));
    }
}

/// The type parameter that a tensor is made of.
fn parameter<'a>(ty: &Type, generics: &'a Generics) -> Option<&'a TypeParam> {
    match ty {
        Type::Group(group) => parameter(&group.elem, generics),
        Type::Array(array) => parameter(&array.elem, generics),
        Type::Slice(slice) => parameter(&slice.elem, generics),
        Type::Path(path) => {
            if let Some(found) = generics.type_params().find(|parameter| path.path.is_ident(&parameter.ident))
            {
                return Some(found);
            }
            let last = path.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            match arguments.args.first() {
                Some(GenericArgument::Type(item)) if last.ident == "Vec" || last.ident == "Box" => {
                    parameter(item, generics)
                }
                _ => None,
            }
        }
        _ => None,
    }
}
