//! A model of a type with `#[derive(Equivalence)]`.

use super::{default_crate, member};
use crate::attr::{equivalence_crate, no_attributes};
use crate::mistakes::Mistakes;
use crate::repr::Repr;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::{Data, DataEnum, DeriveInput, Fields, Generics, Ident, Member, Path, Type};

/// A type with `#[derive(Equivalence)]`.
pub(crate) struct Equivalence<'a> {
    pub(crate) name: &'a Ident,
    pub(crate) generics: &'a Generics,
    /// The path of `gradwire`.
    pub(crate) krate: Path,
    pub(crate) content: Content<'a>,
}

/// What its values are.
pub(crate) enum Content<'a> {
    Struct {
        fields: Vec<EquivalenceField<'a>>,
        /// Whether fields may lie where no reference may point.
        packed: bool,
    },
    Enum {
        /// The integer that a value travels as.
        discriminant: Ident,
        variants: Vec<&'a Ident>,
    },
}

/// A field of a struct.
pub(crate) struct EquivalenceField<'a> {
    /// How code names it.
    pub(crate) member: Member,
    /// Its name without `r#`.
    pub(crate) name: String,
    pub(crate) ty: &'a Type,
}

impl<'a> Equivalence<'a> {
    pub(crate) fn of(input: &'a DeriveInput, mistakes: &mut Mistakes) -> Option<Self> {
        let krate = equivalence_crate(&input.attrs, mistakes);
        let repr = Repr::of(&input.attrs, mistakes);
        let content = match &input.data {
            Data::Struct(data) => {
                Content::Struct { fields: fields(&data.fields, mistakes), packed: repr.packed.is_some() }
            }
            Data::Enum(data) => Content::Enum {
                discriminant: discriminant(repr.integer.as_ref(), mistakes),
                variants: variants(data, &input.ident, mistakes),
            },
            Data::Union(data) => {
                let message = "nobody can tell which field of a union another rank has written: write a struct with a field for each, or with a number that says which";
                mistakes.add(syn::Error::new(data.union_token.span, message));
                return None;
            }
        };
        Some(Self {
            name: &input.ident,
            generics: &input.generics,
            krate: krate.unwrap_or_else(default_crate),
            content,
        })
    }
}

fn fields<'a>(fields: &'a Fields, mistakes: &mut Mistakes) -> Vec<EquivalenceField<'a>> {
    let mut all = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        no_attributes(&field.attrs, "every field of an `Equivalence` is moved as it is", mistakes);
        let member = member(index, field);
        let name = match &member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        all.push(EquivalenceField { member, name, ty: &field.ty });
    }
    all
}

fn variants<'a>(data: &'a DataEnum, name: &Ident, mistakes: &mut Mistakes) -> Vec<&'a Ident> {
    if data.variants.is_empty() {
        mistakes.at(name, format_args!("`{name}` has no values that could be moved: give it a variant"));
    }
    for variant in &data.variants {
        no_attributes(&variant.attrs, "a variant is moved as its discriminant", mistakes);
        let name = &variant.ident;
        if !variant.fields.is_empty() {
            let message = format_args!(
                "the bytes of `{name}` would mean something else in each variant: write a struct with one field for the variant, an enum without data, and one for what each variant holds"
            );
            mistakes.at(variant, message);
        } else if !matches!(variant.fields, Fields::Unit) {
            mistakes.at(variant, format_args!("there is nothing in the brackets: write `{name}` alone"));
        }
    }
    data.variants.iter().map(|variant| &variant.ident).collect()
}

/// The integer that an enum's values travel as: that of its `repr`, or `i64`, which holds whatever discriminant it may
/// have without one.
fn discriminant(repr: Option<&Ident>, mistakes: &mut Mistakes) -> Ident {
    let Some(repr) = repr else { return Ident::new("i64", Span::call_site()) };
    for (machine, fixed) in [("usize", "u64"), ("isize", "i64")] {
        if repr == machine {
            let message =
                format_args!("`{machine}` is not as wide on every machine: write `#[repr({fixed})]`");
            mistakes.at(repr, message);
        }
    }
    repr.clone()
}
