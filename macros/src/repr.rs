//! Reads `#[repr(...)]`.

use crate::mistakes::Mistakes;
use proc_macro2::Span;
use syn::{Attribute, Ident};

/// What the `repr` of a type says of its memory.
#[derive(Default)]
pub(crate) struct Repr {
    /// The integer that an enum is.
    pub(crate) integer: Option<Ident>,
    /// Where `packed` is written.
    pub(crate) packed: Option<Span>,
}

const INTEGERS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];

impl Repr {
    pub(crate) fn of(attributes: &[Attribute], mistakes: &mut Mistakes) -> Self {
        let mut this = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
            let parsed = attribute.parse_nested_meta(|meta| {
                if meta.input.peek(syn::token::Paren) {
                    // The alignment in `packed(2)` and `align(8)`.
                    let alignment;
                    syn::parenthesized!(alignment in meta.input);
                    alignment.parse::<proc_macro2::TokenStream>()?;
                }
                let Some(name) = meta.path.get_ident() else { return Ok(()) };
                if name == "packed" {
                    this.packed = Some(name.span());
                } else if INTEGERS.iter().any(|integer| name == integer) {
                    this.integer = Some(name.clone());
                }
                Ok(())
            });
            if let Err(mistake) = parsed {
                mistakes.add(mistake);
            }
        }
        this
    }
}
