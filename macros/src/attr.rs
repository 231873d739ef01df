//! Reads `#[gradient(...)]`.

use crate::mistakes::Mistakes;
use crate::names::{REDUCTIONS, WIRES, reduction_elsewhere, reduction_meant};
use proc_macro2::Span;
use quote::format_ident;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitStr, Path};

/// What the attributes on a struct say.
#[derive(Default)]
pub(crate) struct StructAttributes {
    pub(crate) reduce: Option<Reduction>,
    pub(crate) krate: Option<Path>,
}

/// What the attributes on a field say.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) reduce: Option<Reduction>,
    pub(crate) wire: Option<Ident>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) skip: Option<Span>,
}

/// A named operation.
#[derive(Clone)]
pub(crate) enum Reduction {
    /// One of ours.
    BuiltIn(Ident),
    /// The path of a user's.
    Own(Path),
}

impl StructAttributes {
    pub(crate) fn of(attributes: &[Attribute], mistakes: &mut Mistakes) -> Self {
        let mut this = Self::default();
        each_setting("gradient", attributes, mistakes, |name, meta| match name {
            "reduce" => once(&mut this.reduce, meta, reduction(meta)?),
            "crate" => once(&mut this.krate, meta, path(meta)?),
            "wire" | "rename" | "skip" => {
                let _ = rest(meta);
                Err(meta.error(format_args!("`{name}` belongs on a field: move it there")))
            }
            _ => Err(unknown(meta, name, "on a struct: `reduce = Average`, `crate = \"path\"`")),
        });
        this
    }
}

impl FieldAttributes {
    pub(crate) fn of(attributes: &[Attribute], mistakes: &mut Mistakes) -> Self {
        let mut this = Self::default();
        each_setting("gradient", attributes, mistakes, |name, meta| match name {
            "reduce" => once(&mut this.reduce, meta, reduction(meta)?),
            "wire" => once(&mut this.wire, meta, wire(meta)?),
            "rename" => once(&mut this.rename, meta, string(meta)?),
            "skip" if meta.input.peek(syn::Token![=]) => {
                let _ = rest(meta);
                Err(meta.error("write `skip` alone, without a value"))
            }
            "skip" => {
                once(&mut this.skip, meta, meta.path.get_ident().map_or_else(Span::call_site, Ident::span))
            }
            "crate" => {
                let _ = rest(meta);
                Err(meta.error("`crate` belongs on the struct: move it there"))
            }
            _ => Err(unknown(
                meta,
                name,
                "on a field: `reduce = Max`, `wire = bf16`, `rename = \"name\"`, `skip`",
            )),
        });
        this
    }
}

/// The path in `#[equivalence(crate = "path")]`.
pub(crate) fn equivalence_crate(attributes: &[Attribute], mistakes: &mut Mistakes) -> Option<Path> {
    let mut krate = None;
    each_setting("equivalence", attributes, mistakes, |name, meta| match name {
        "crate" => once(&mut krate, meta, path(meta)?),
        _ => Err(unknown(meta, name, "on the type: `crate = \"path\"`")),
    });
    krate
}

/// `#[equivalence(...)]` on a field or a variant is a mistake, `because` of what is done anyway.
pub(crate) fn no_attributes(attributes: &[Attribute], because: &str, mistakes: &mut Mistakes) {
    each_setting("equivalence", attributes, mistakes, |name, meta| {
        let _ = rest(meta);
        Err(meta.error(format_args!("`{name}` means nothing here: {because}")))
    });
}

/// Calls `set` for each setting, and goes on after mistakes.
fn each_setting(
    attribute_name: &str,
    attributes: &[Attribute],
    mistakes: &mut Mistakes,
    mut set: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<()>,
) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(attribute_name)) {
        let parsed = attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            if let Err(mistake) = set(&name, &meta) {
                mistakes.add(mistake);
            }
            Ok(())
        });
        if let Err(mistake) = parsed {
            mistakes.add(mistake);
        }
    }
}

fn once<T>(place: &mut Option<T>, meta: &ParseNestedMeta<'_>, value: T) -> syn::Result<()> {
    if place.is_some() {
        let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
        return Err(meta.error(format_args!("`{name}` is given twice: keep one")));
    }
    *place = Some(value);
    Ok(())
}

/// The value of `name = value`, whatever it is.
fn rest(meta: &ParseNestedMeta<'_>) -> syn::Result<Option<Expr>> {
    if meta.input.peek(syn::Token![=]) { meta.value()?.parse().map(Some) } else { Ok(None) }
}

fn unknown(meta: &ParseNestedMeta<'_>, name: &str, known: &str) -> syn::Error {
    let _ = rest(meta);
    meta.error(format_args!("`{name}` means nothing here; write {known}"))
}

fn string(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
    match rest(meta)? {
        Some(Expr::Lit(ExprLit { lit: Lit::Str(string), .. })) => Ok(string),
        Some(other) => {
            Err(syn::Error::new_spanned(other, format_args!("write a string: `{name} = \"...\"`")))
        }
        None => Err(meta.error(format_args!("write `{name} = \"...\"`"))),
    }
}

fn path(meta: &ParseNestedMeta<'_>) -> syn::Result<Path> {
    let string = string(meta)?;
    let message =
        "this is no path: write where Gradwire is found, as in `crate = \"crate::reexported::gradwire\"`";
    string.parse().map_err(|_| syn::Error::new_spanned(string, message))
}

fn reduction(meta: &ParseNestedMeta<'_>) -> syn::Result<Reduction> {
    let list = REDUCTIONS.join(", ");
    let path = match rest(meta)? {
        Some(Expr::Path(path)) if path.qself.is_none() => path.path,
        Some(other) => {
            let message = format_args!(
                "write the name of a reduction, without quotes or parameters: {list}, or the path of your own, as in `crate::Clip`"
            );
            return Err(syn::Error::new_spanned(other, message));
        }
        None => return Err(meta.error("write `reduce = Sum`, or another reduction")),
    };
    let Some(name) = path.get_ident() else {
        return Ok(Reduction::Own(path));
    };
    if REDUCTIONS.iter().any(|known| name == known) {
        return Ok(Reduction::BuiltIn(name.clone()));
    }
    if let Some(instead) = reduction_elsewhere(&name.to_string()) {
        return Err(syn::Error::new_spanned(name, format_args!("`{name}` {instead}")));
    }
    let meant = reduction_meant(&name.to_string()).map(|meant| format!(" (did you mean `{meant}`?)"));
    let message = format_args!(
        "no reduction is called `{name}`{}; write one of {list}, or the path of your own, as in `self::{name}`",
        meant.unwrap_or_default()
    );
    Err(syn::Error::new_spanned(name, message))
}

fn wire(meta: &ParseNestedMeta<'_>) -> syn::Result<Ident> {
    let names = WIRES.map(|(name, _)| name);
    let value = rest(meta)?.ok_or_else(|| meta.error("write `wire = bf16`, or another float"))?;
    let name = match &value {
        Expr::Path(path) => path.path.get_ident(),
        _ => None,
    };
    match name.and_then(|name| WIRES.iter().find(|(known, _)| name == known).map(|(_, rust)| (name, rust))) {
        Some((name, rust)) => Ok(format_ident!("{rust}", span = name.span())),
        None => {
            let message = format_args!("a tensor can travel as {}: write `wire = bf16`", names.join(", "));
            Err(syn::Error::new_spanned(value, message))
        }
    }
}
