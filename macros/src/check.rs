//! Finds what cannot work, as far as names and syntax tell.

mod equivalence;
mod gradient;

pub(crate) use equivalence::equivalence;
pub(crate) use gradient::gradient;

use crate::mistakes::Mistakes;
use syn::{GenericArgument, Generics, Path, PathArguments, Type, TypeParam, WherePredicate};

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

/// The name of a type that is, by the look of its path, one of the standard library, and whether it has parameters.
fn standard(path: &Path) -> Option<(String, bool)> {
    let (first, last) = (path.segments.first()?, path.segments.last()?);
    let is_standard = ["std", "alloc", "core"].iter().any(|name| first.ident == name);
    let is_generic = matches!(last.arguments, PathArguments::AngleBracketed(_));
    (path.segments.len() == 1 || is_standard).then(|| (last.ident.to_string(), is_generic))
}
