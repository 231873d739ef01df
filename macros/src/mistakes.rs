//! Collects mistakes, so that one compilation shows them all.

use quote::ToTokens;
use std::fmt::Display;

#[derive(Default)]
pub(crate) struct Mistakes {
    all: Option<syn::Error>,
}

impl Mistakes {
    /// Notes a mistake at `place`. The message says what to write instead.
    pub(crate) fn at(&mut self, place: impl ToTokens, message: impl Display) {
        self.add(syn::Error::new_spanned(place, message));
    }

    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.all {
            Some(all) => all.combine(mistake),
            none => *none = Some(mistake),
        }
    }

    /// Ok if there were none.
    pub(crate) fn none(self) -> syn::Result<()> {
        self.all.map_or(Ok(()), Err)
    }
}
