//! Derive macros of Gradwire: `#[derive(Gradient)]` and `#[derive(Equivalence)]`.
//!
//! A derive runs in four steps: `attr` reads the attributes, `model` makes a model of the struct, `check` finds what
//! cannot work, `expand` writes the implementation. All mistakes found on the way are reported at once. What only the
//! compiler can know (whether a type is a tensor) it tells itself, at the field, by the bounds of the expansion.

mod attr;
mod check;
mod expand;
#[cfg(test)]
mod expansions;
mod mistakes;
mod model;
mod names;
mod repr;

use mistakes::Mistakes;
use proc_macro2::TokenStream;
use syn::DeriveInput;

/// Derives `Gradient` for a struct of tensors, and a struct `<Name>View` that borrows received bytes.
///
/// On the struct:
///
/// - `#[gradient(reduce = Average)]`: the operation of all tensors that name none; without it `Sum`.
/// - `#[gradient(crate = "path")]`: where to find Gradwire, if not at `::gradwire`.
///
/// On a field:
///
/// - `#[gradient(reduce = Max)]`: its operation; a path of more than one segment is an operation of your own.
/// - `#[gradient(wire = bf16)]`: the number format in which it travels.
/// - `#[gradient(rename = "name")]`: its name on the wire.
/// - `#[gradient(skip)]`: it stays on this rank. A `PhantomData` field is always left out.
#[proc_macro_derive(Gradient, attributes(gradient))]
pub fn derive_gradient(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    finish(syn::parse(input).and_then(|input| gradient(&input)))
}

fn gradient(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let model = model::Gradient::of(input, &mut mistakes);
    if let Some(model) = &model {
        check::gradient(model, &mut mistakes);
    }
    mistakes.none()?;
    Ok(model.map(|model| expand::gradient(&model)).unwrap_or_default())
}

/// Derives `Equivalence` for a struct of plain values, whose fields are moved one after the other, without padding, and
/// for an enum without data.
///
/// A value of an enum travels as its discriminant: as the integer of its `repr`, or as an `i64` where it has none.
/// A discriminant that no variant has is refused on receipt.
///
/// `#[equivalence(crate = "path")]` on the type says where to find Gradwire, if not at `::gradwire`.
#[proc_macro_derive(Equivalence, attributes(equivalence))]
pub fn derive_equivalence(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    finish(syn::parse(input).and_then(|input| equivalence(&input)))
}

fn equivalence(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    let model = model::Equivalence::of(input, &mut mistakes);
    if let Some(model) = &model {
        check::equivalence(model, &mut mistakes);
    }
    mistakes.none()?;
    Ok(model.map(|model| expand::equivalence(&model)).unwrap_or_default())
}

fn finish(expansion: syn::Result<TokenStream>) -> proc_macro::TokenStream {
    expansion.unwrap_or_else(|mistakes| mistakes.to_compile_error()).into()
}
