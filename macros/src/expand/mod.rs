//! Writes the implementation.

mod equivalence;
mod gradient;
mod view;

pub(crate) use equivalence::equivalence;

use crate::model::Gradient;
use proc_macro2::TokenStream;
use quote::quote;

pub(crate) fn gradient(model: &Gradient<'_>) -> TokenStream {
    let view = view::View::of(model);
    let definition = view.definition();
    let krate = &model.krate;
    let view_impls = view.impls();
    let gradient_impl = gradient::implementation(model, &view);
    quote! {
        #definition

        #[allow(private_bounds, trivial_bounds, unused_qualifications)]
        const _: () = {
            use #krate::__private::schema as __schema;
            #view_impls
            #gradient_impl
        };
    }
}
