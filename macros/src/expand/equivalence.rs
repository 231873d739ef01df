//! `impl Equivalence`.

use crate::model::Equivalence;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

pub(crate) fn equivalence(model: &Equivalence<'_>) -> TokenStream {
    let (krate, name) = (&model.krate, model.name);
    let (impl_generics, type_generics, where_clause) = model.generics.split_for_impl();
    let count = model.fields.len() as u64;
    let sizes = model.fields.iter().map(|(_, _, ty)| size(ty));
    let fingerprints = model.fields.iter().map(|(_, name, ty)| {
        let fingerprint = quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::FINGERPRINT };
        quote!(.name(#name).number(#fingerprint))
    });
    let packs = model.fields.iter().map(|(member, _, ty)| {
        let (pack, size) = (quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::pack }, size(ty));
        quote! { #pack(&self.#member, __schema::equivalence::pack_field(#size, bytes, &mut offset)); }
    });
    let unpacks = model.fields.iter().map(|(member, _, ty)| {
        let (unpack, size) = (quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::unpack }, size(ty));
        quote! { #member: __schema::equivalence::unpack_field(#size, #unpack, bytes, &mut offset)? }
    });
    let offset = if count > 0 { quote!(let mut offset = 0;) } else { quote!(let _ = bytes;) };
    quote! {
        #[allow(unused_qualifications)]
        const _: () = {
            use #krate::__private::schema as __schema;

            #[automatically_derived]
            impl #impl_generics __schema::Equivalence for #name #type_generics #where_clause {
                const PACKED_SIZE: usize = 0 #(+ #sizes)*;
                const FINGERPRINT: u64 =
                    __schema::layout::Fingerprint::new().number(#count)#(#fingerprints)*.finish();

                fn pack(&self, bytes: &mut [u8]) {
                    #offset
                    #(#packs)*
                }

                fn unpack(
                    bytes: &[u8],
                ) -> ::core::result::Result<Self, __schema::equivalence::InvalidValue> {
                    #offset
                    ::core::result::Result::Ok(Self { #(#unpacks),* })
                }
            }
        };
    }
}

fn size(ty: &Type) -> TokenStream {
    quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::PACKED_SIZE }
}
