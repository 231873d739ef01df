//! `impl Equivalence`.

use crate::model::{Content, Equivalence, EquivalenceField};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Ident, Type};

pub(crate) fn equivalence(model: &Equivalence<'_>) -> TokenStream {
    let (krate, name) = (&model.krate, model.name);
    let (impl_generics, type_generics, where_clause) = model.generics.split_for_impl();
    let items = match &model.content {
        Content::Struct { fields, packed } => of_struct(fields, *packed),
        Content::Enum { discriminant, variants } => of_enum(name, discriminant, variants),
    };
    quote! {
        #[allow(unused_qualifications)]
        const _: () = {
            use #krate::__private::schema as __schema;

            #[automatically_derived]
            impl #impl_generics __schema::Equivalence for #name #type_generics #where_clause {
                #items
            }
        };
    }
}

/// Field after field.
fn of_struct(fields: &[EquivalenceField<'_>], packed: bool) -> TokenStream {
    let count = fields.len() as u64;
    let sizes = fields.iter().map(|field| size(field.ty));
    let fingerprints = fields.iter().map(|EquivalenceField { name, ty, .. }| {
        let fingerprint = quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::FINGERPRINT };
        quote!(.name(#name).number(#fingerprint))
    });
    let packs = fields.iter().map(|EquivalenceField { member, ty, .. }| {
        let (pack, size) = (quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::pack }, size(ty));
        // No reference may point into a packed struct: to a copy then.
        let field = if packed { quote!({ self.#member }) } else { quote!(self.#member) };
        quote! { #pack(&#field, __schema::equivalence::pack_field(#size, bytes, &mut offset)); }
    });
    let unpacks = fields.iter().map(|EquivalenceField { member, ty, .. }| {
        let (unpack, size) = (quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::unpack }, size(ty));
        quote! { #member: __schema::equivalence::unpack_field(#size, #unpack, bytes, &mut offset)? }
    });
    let offset = if count > 0 { quote!(let mut offset = 0;) } else { quote!(let _ = bytes;) };
    quote! {
        const PACKED_SIZE: usize = 0 #(+ #sizes)*;
        const FINGERPRINT: u64 = __schema::layout::Fingerprint::new().number(#count)#(#fingerprints)*.finish();

        fn pack(&self, bytes: &mut [u8]) {
            #offset
            #(#packs)*
        }

        fn unpack(bytes: &[u8]) -> ::core::result::Result<Self, __schema::equivalence::InvalidValue> {
            #offset
            ::core::result::Result::Ok(Self { #(#unpacks),* })
        }
    }
}

/// The discriminant, checked when it comes back.
fn of_enum(name: &Ident, integer: &Ident, variants: &[&Ident]) -> TokenStream {
    let count = variants.len() as u64;
    let name = name.unraw().to_string();
    let names = variants.iter().map(|variant| variant.unraw().to_string());
    quote! {
        const PACKED_SIZE: usize = <#integer as __schema::Equivalence>::PACKED_SIZE;
        const FINGERPRINT: u64 = __schema::layout::Fingerprint::new()
            .name("enum")
            .number(<#integer as __schema::Equivalence>::FINGERPRINT)
            .number(#count)
            #(.name(#names).number(Self::#variants as u64))*
            .finish();

        fn pack(&self, bytes: &mut [u8]) {
            let discriminant = match self {
                #(Self::#variants => Self::#variants as #integer,)*
            };
            <#integer as __schema::Equivalence>::pack(&discriminant, bytes);
        }

        fn unpack(bytes: &[u8]) -> ::core::result::Result<Self, __schema::equivalence::InvalidValue> {
            match <#integer as __schema::Equivalence>::unpack(bytes)? {
                #(discriminant if discriminant == Self::#variants as #integer => ::core::result::Result::Ok(Self::#variants),)*
                _ => ::core::result::Result::Err(__schema::equivalence::InvalidValue { type_name: #name, offset: 0 }),
            }
        }
    }
}

fn size(ty: &Type) -> TokenStream {
    quote_spanned! {ty.span()=> <#ty as __schema::Equivalence>::PACKED_SIZE }
}
