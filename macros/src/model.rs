//! A model of the type: what the derive needs to know of it.

mod equivalence;

pub(crate) use equivalence::{Content, Equivalence, EquivalenceField};

use crate::attr::{FieldAttributes, Reduction, StructAttributes};
use crate::mistakes::Mistakes;
use crate::names::NUMBERS;
use crate::repr::Repr;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{
    Attribute, Data, DeriveInput, Fields, GenericArgument, GenericParam, Generics, Ident, Member, Path,
    PathArguments, Type, Visibility, parse_quote,
};

/// A struct with `#[derive(Gradient)]`.
pub(crate) struct Gradient<'a> {
    pub(crate) name: &'a Ident,
    pub(crate) visibility: &'a Visibility,
    pub(crate) generics: &'a Generics,
    /// The path of `gradwire`.
    pub(crate) krate: Path,
    pub(crate) shape: Shape,
    /// Where `repr(packed)` is written.
    pub(crate) packed: Option<Span>,
    /// Those that take part, in the order of declaration.
    pub(crate) fields: Vec<Field<'a>>,
}

/// How fields are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Named,
    Tuple,
    Unit,
}

/// A field that takes part.
pub(crate) struct Field<'a> {
    pub(crate) member: Member,
    /// Its name on the wire.
    pub(crate) name: String,
    /// Where the name is written.
    pub(crate) name_span: Span,
    pub(crate) visibility: &'a Visibility,
    pub(crate) docs: Vec<&'a Attribute>,
    pub(crate) ty: &'a Type,
    pub(crate) reduction: Reduction,
    /// Whether the field names its reduction itself.
    pub(crate) own_reduction: bool,
    pub(crate) wire: Option<Ident>,
}

impl<'a> Gradient<'a> {
    pub(crate) fn of(input: &'a DeriveInput, mistakes: &mut Mistakes) -> Option<Self> {
        let attributes = StructAttributes::of(&input.attrs, mistakes);
        let (shape, fields) = struct_fields(input, mistakes)?;
        let default =
            attributes.reduce.unwrap_or_else(|| Reduction::BuiltIn(Ident::new("Sum", Span::call_site())));
        let fields = fields
            .iter()
            .enumerate()
            .filter_map(|(index, field)| Field::of(index, field, &default, mistakes))
            .collect();
        Some(Self {
            name: &input.ident,
            visibility: &input.vis,
            generics: &input.generics,
            krate: attributes.krate.unwrap_or_else(default_crate),
            shape,
            packed: Repr::of(&input.attrs, mistakes).packed,
            fields,
        })
    }
}

impl<'a> Field<'a> {
    /// `None` for those that stay out.
    fn of(index: usize, field: &'a syn::Field, default: &Reduction, mistakes: &mut Mistakes) -> Option<Self> {
        let attributes = FieldAttributes::of(&field.attrs, mistakes);
        if let Some(skip) = attributes.skip {
            if attributes.reduce.is_some() || attributes.wire.is_some() || attributes.rename.is_some() {
                let message = "a skipped field stays on this rank: remove `skip`, or the other settings";
                mistakes.add(syn::Error::new(skip, message));
            }
            return None;
        }
        if is_phantom(&field.ty) {
            if attributes.reduce.is_some() || attributes.wire.is_some() || attributes.rename.is_some() {
                mistakes.at(
                    &field.ty,
                    "there is nothing in a `PhantomData`, which is left out: remove the settings",
                );
            }
            return None;
        }
        let member = member(index, field);
        let (name, name_span) = match (&attributes.rename, &field.ident) {
            (Some(rename), _) => (rename.value(), rename.span()),
            (None, Some(ident)) => (ident.unraw().to_string(), ident.span()),
            (None, None) => (index.to_string(), syn::spanned::Spanned::span(&field.ty)),
        };
        Some(Self {
            member,
            name,
            name_span,
            visibility: &field.vis,
            docs: field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).collect(),
            ty: &field.ty,
            own_reduction: attributes.reduce.is_some(),
            reduction: attributes.reduce.unwrap_or_else(|| default.clone()),
            wire: attributes.wire,
        })
    }

    /// Whether its type mentions a parameter of the struct.
    pub(crate) fn is_generic(&self, generics: &Generics) -> bool {
        let parameters: Vec<_> = generics
            .params
            .iter()
            .map(|parameter| match parameter {
                GenericParam::Type(parameter) => &parameter.ident,
                GenericParam::Const(parameter) => &parameter.ident,
                GenericParam::Lifetime(parameter) => &parameter.lifetime.ident,
            })
            .collect();
        mentions(self.ty.to_token_stream(), &parameters)
    }

    /// Whether an attribute says that it must be a tensor.
    pub(crate) fn must_be_tensor(&self) -> bool {
        self.own_reduction || self.wire.is_some()
    }
}

fn default_crate() -> Path {
    parse_quote!(::gradwire)
}

/// The fields of a struct; anything else is a mistake.
fn struct_fields<'a>(input: &'a DeriveInput, mistakes: &mut Mistakes) -> Option<(Shape, &'a Fields)> {
    let (keyword, instead) = match &input.data {
        Data::Struct(data) => {
            let shape = match data.fields {
                Fields::Named(_) => Shape::Named,
                Fields::Unnamed(_) => Shape::Tuple,
                Fields::Unit => Shape::Unit,
            };
            return Some((shape, &data.fields));
        }
        Data::Enum(data) => (data.enum_token.span, "a struct with a field for what each variant holds"),
        Data::Union(data) => (data.union_token.span, "a struct"),
    };
    let message =
        format_args!("`Gradient` is for structs, whose tensors are always all there: write {instead}");
    mistakes.add(syn::Error::new(keyword, message));
    None
}

/// How code names a field: `name`, `r#type`, `0`.
fn member(index: usize, field: &syn::Field) -> Member {
    match &field.ident {
        Some(ident) => Member::Named(ident.clone()),
        None => {
            Member::Unnamed(syn::Index { index: index as u32, span: syn::spanned::Spanned::span(&field.ty) })
        }
    }
}

fn mentions(tokens: TokenStream, names: &[&Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Whether the type is a tensor by the look of it.
pub(crate) fn looks_like_tensor(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => looks_like_tensor(&group.elem),
        Type::Path(path) => match path.path.segments.last().map(|last| (last, &last.arguments)) {
            Some((last, PathArguments::AngleBracketed(arguments))) => {
                match (last.ident.to_string().as_str(), arguments.args.first()) {
                    ("Vec", Some(GenericArgument::Type(item))) => looks_like_item(item),
                    ("Box", Some(GenericArgument::Type(Type::Slice(slice)))) => looks_like_item(&slice.elem),
                    ("Box", Some(GenericArgument::Type(Type::Array(array)))) => looks_like_item(&array.elem),
                    _ => false,
                }
            }
            _ => looks_like_item(ty),
        },
        _ => looks_like_item(ty),
    }
}

fn looks_like_item(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => looks_like_item(&group.elem),
        Type::Array(array) => looks_like_item(&array.elem),
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|last| NUMBERS.iter().any(|number| last.ident == number))
        }
        _ => false,
    }
}

fn is_phantom(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_phantom(&group.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "PhantomData"),
        _ => false,
    }
}
