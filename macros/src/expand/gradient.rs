//! `impl Gradient`.

use super::view::{View, bounded};
use crate::attr::Reduction;
use crate::model::{Field, Gradient};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Lifetime, Path};

pub(crate) fn implementation(model: &Gradient<'_>, view: &View<'_>) -> TokenStream {
    let name = model.name;
    let name_string = name.unraw().to_string();
    let generics = bounded(model);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let layout_fields = model.fields.iter().map(layout_field);
    let visits = model.fields.iter().enumerate().map(|(index, field)| visit(index, field));
    let parts = model.fields.iter().map(part);
    let bytes = Lifetime::new("'__bytes", Span::call_site());
    let view_type = view.ty(&bytes);
    let view_literal = view.literal();
    quote! {
        #[automatically_derived]
        impl #impl_generics __schema::Gradient for #name #type_generics #where_clause {
            const LAYOUT: &'static __schema::Layout =
                &__schema::Layout::new(#name_string, &[#(#layout_fields),*]);

            type View<#bytes> = #view_type;

            fn visit<__V: __schema::FieldVisitor>(
                &mut self,
                visitor: &mut __V,
            ) -> ::core::result::Result<(), __V::Error> {
                let fields = <Self as __schema::Gradient>::LAYOUT.fields;
                #(#visits)*
                ::core::result::Result::Ok(())
            }

            #[inline]
            fn parts<#bytes, __P: __schema::gradient::Parts<#bytes>>(&#bytes self, parts: &mut __P) {
                #(#parts)*
            }

            #[inline]
            fn read<#bytes>(
                reader: &mut __schema::gradient::Reader<#bytes>,
            ) -> ::core::result::Result<#view_type, __schema::gradient::ViewError> {
                ::core::result::Result::Ok(#view_literal)
            }
        }
    }
}

fn layout_field(field: &Field<'_>) -> TokenStream {
    let name = &field.name;
    let reduced = reduced(field);
    quote! { __schema::layout::Field { name: #name, kind: #reduced::KIND } }
}

fn visit(index: usize, field: &Field<'_>) -> TokenStream {
    let member = &field.member;
    let reduced = reduced(field);
    let reduction = reduction(field);
    quote! { #reduced::visit(&#reduction, &mut self.#member, &fields[#index], visitor)?; }
}

fn part(field: &Field<'_>) -> TokenStream {
    let (member, ty) = (&field.member, field.ty);
    let path = quote_spanned! {ty.span()=> <#ty as __schema::gradient::Field>::parts };
    quote! { #path(&self.#member, parts); }
}

/// The trait through which the field is reduced: `<Sum as DefaultReduction<...>>`. What the compiler has to say of the
/// type it says at the type; of a reduction that the field names, there.
fn reduced(field: &Field<'_>) -> TokenStream {
    let ty = field.ty;
    let reduction = reduction(field);
    let span = ty.span();
    if !field.must_be_tensor() {
        return quote_spanned! {span=>
            <#reduction as __schema::gradient::DefaultReduction<<#ty as __schema::gradient::Field>::Kind, #ty>>
        };
    }
    let wire = match &field.wire {
        Some(wire) => quote_spanned! {wire.span()=> __schema::gradient::wire::#wire },
        None => quote_spanned! {span=> <#ty as __schema::gradient::TensorField>::Element },
    };
    quote_spanned! {span=> <#reduction as __schema::gradient::TensorReduction<#wire, #ty>> }
}

/// The path of the reduction: both its type and its value.
fn reduction(field: &Field<'_>) -> TokenStream {
    match &field.reduction {
        Reduction::Own(path) => respanned(path, field),
        Reduction::BuiltIn(name) => {
            let mut name = name.clone();
            name.set_span(reduction_span(field, name.span()));
            quote_spanned! {name.span()=> __schema::operation::#name }
        }
    }
}

fn respanned(path: &Path, field: &Field<'_>) -> TokenStream {
    let mut path = path.clone();
    for segment in &mut path.segments {
        let span = segment.ident.span();
        segment.ident.set_span(span.located_at(reduction_span(field, span)));
    }
    quote!(#path)
}

/// A struct's default is told where it does not suit: at the field.
fn reduction_span(field: &Field<'_>, own: Span) -> Span {
    if field.own_reduction { own } else { own.located_at(field.ty.span()) }
}
