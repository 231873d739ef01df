//! What cannot be moved between processes.

use super::{bounded, machine_sized, standard};
use crate::mistakes::Mistakes;
use crate::model::{Content, Equivalence};
use syn::{Path, Type};

pub(crate) fn equivalence(model: &Equivalence<'_>, mistakes: &mut Mistakes) {
    for parameter in model.generics.lifetimes() {
        let message = format_args!(
            "what is borrowed stays on this rank: remove `{}` and own the values",
            parameter.lifetime
        );
        mistakes.at(parameter, message);
    }
    let Content::Struct { fields, .. } = &model.content else { return };
    for field in fields {
        bounded(field.ty, model.generics, "write `T: Equivalence`", mistakes);
        value(field.ty, mistakes);
    }
}

/// Types that are no plain value, by the look of them.
fn value(ty: &Type, mistakes: &mut Mistakes) {
    match ty {
        Type::Group(group) => value(&group.elem, mistakes),
        Type::Paren(paren) => value(&paren.elem, mistakes),
        Type::Array(array) => value(&array.elem, mistakes),
        Type::Tuple(tuple) => tuple.elems.iter().for_each(|item| value(item, mistakes)),
        Type::Reference(_) | Type::Ptr(_) => mistakes.at(
            ty,
            "an address means nothing to another process: write the value itself, or an array of them",
        ),
        Type::BareFn(_) => mistakes.at(
            ty,
            "an address means nothing to another process: write an enum that says which function is meant",
        ),
        Type::Path(path) => match instead(&path.path) {
            Some(message) => mistakes.at(ty, message),
            None => machine_sized(ty, mistakes),
        },
        _ => {}
    }
}

/// What to write instead of a type of the standard library that is no plain value.
fn instead(path: &Path) -> Option<&'static str> {
    let (name, is_generic) = standard(path)?;
    Some(match name.as_str() {
        "String" => {
            "text lives elsewhere and has any length: write `[u8; N]` and its length, or move its bytes as a slice in a call of their own"
        }
        "Option" if is_generic => {
            "an `Option` may hold nothing: write the value, and a `bool` that says whether it is there"
        }
        "Result" if is_generic => {
            "a `Result` is one of two values: write a field for each, and a `bool` that says which"
        }
        "Vec" | "Box" | "Rc" | "Arc" if is_generic => {
            "its contents live elsewhere: write an array `[T; N]`, or move the contents as a slice in a call of their own"
        }
        "HashMap" | "BTreeMap" | "HashSet" | "BTreeSet" | "VecDeque" if is_generic => {
            "its contents live elsewhere: move them as a slice of arrays or structs in a call of their own"
        }
        _ => return None,
    })
}
