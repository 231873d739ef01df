//! The struct that borrows received bytes: `FooView` for `Foo`.

use crate::model::{Field, Gradient, Shape, looks_like_tensor};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{GenericParam, Generics, Ident, Lifetime, LifetimeParam, Member};

pub(crate) struct View<'a> {
    model: &'a Gradient<'a>,
    name: Ident,
    /// Of the borrowed bytes.
    lifetime: Lifetime,
    /// The struct's, with the lifetime in front.
    generics: Generics,
}

impl<'a> View<'a> {
    pub(crate) fn of(model: &'a Gradient<'a>) -> Self {
        let lifetime = unused_lifetime(model.generics);
        let mut generics = bounded(model);
        generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(lifetime.clone())));
        Self { model, name: format_ident!("{}View", model.name.unraw()), lifetime, generics }
    }

    /// The type, over the lifetime `'bytes`.
    pub(crate) fn ty(&self, bytes: &Lifetime) -> TokenStream {
        let mut generics = self.generics.clone();
        generics.params[0] = GenericParam::Lifetime(LifetimeParam::new(bytes.clone()));
        let name = &self.name;
        let (_, type_generics, _) = generics.split_for_impl();
        quote!(#name #type_generics)
    }

    pub(crate) fn definition(&self) -> TokenStream {
        let (name, visibility, generics) = (&self.name, self.model.visibility, &self.generics);
        let where_clause = &self.generics.where_clause;
        let docs = format!(
            "A [`{0}`] in received bytes: what `{0}::view` returns. Each field refers to its tensor.",
            self.model.name.unraw()
        );
        let fields = self.fields();
        let body = match self.model.shape {
            Shape::Tuple => quote! { #generics (#(#fields),*) #where_clause; },
            Shape::Named | Shape::Unit => quote! { #generics #where_clause { #(#fields),* } },
        };
        quote! {
            #[doc = #docs]
            #[allow(dead_code, private_bounds, trivial_bounds, unused_qualifications)]
            #visibility struct #name #body
        }
    }

    fn fields(&self) -> Vec<TokenStream> {
        let mut fields = Vec::new();
        for field in &self.model.fields {
            if let Member::Unnamed(index) = &field.member {
                // The place of a field that takes no part.
                fields.resize_with(index.index as usize, || quote!(()));
            }
            fields.push(self.field(field));
        }
        if self.has_phantom() {
            let name = self.model.name;
            let (_, type_generics, _) = self.model.generics.split_for_impl();
            let phantom = self.phantom().map(|name| quote!(#name:));
            fields.push(quote! {
                #[doc(hidden)]
                #phantom ::core::marker::PhantomData<fn() -> #name #type_generics>
            });
        }
        fields
    }

    fn field(&self, field: &Field<'_>) -> TokenStream {
        let (krate, lifetime, ty) = (&self.model.krate, &self.lifetime, field.ty);
        let (docs, visibility) = (&field.docs, field.visibility);
        let name = match &field.member {
            Member::Named(name) => Some(quote!(#name:)),
            Member::Unnamed(_) => None,
        };
        let ty = quote_spanned! {ty.span()=> <#ty as #krate::__private::schema::gradient::Field>::View<#lifetime> };
        quote!(#(#docs)* #visibility #name #ty)
    }

    /// Reads all fields from `reader`.
    pub(crate) fn literal(&self) -> TokenStream {
        let name = &self.name;
        let structure = self.model.name.unraw().to_string();
        let mut members = Vec::new();
        for field in &self.model.fields {
            if let Member::Unnamed(index) = &field.member {
                while members.len() < index.index as usize {
                    let gap = syn::Index::from(members.len());
                    members.push(quote!(#gap: ()));
                }
            }
            let (member, ty, wire_name) = (&field.member, field.ty, &field.name);
            let read = quote_spanned! {ty.span()=> <#ty as __schema::gradient::Field>::read };
            members.push(quote! {
                #member: #read(
                    reader,
                    __schema::gradient::TensorName { structure: #structure, field: #wire_name },
                )?
            });
        }
        if self.has_phantom() {
            let phantom = match self.phantom() {
                Some(name) => Member::Named(name),
                None => Member::Unnamed(syn::Index::from(members.len())),
            };
            members.push(quote!(#phantom: ::core::marker::PhantomData));
        }
        quote!(#name { #(#members),* })
    }

    /// Written out, because a derive would ask for bounds that the fields do not need.
    pub(crate) fn impls(&self) -> TokenStream {
        let name = &self.name;
        let name_string = name.to_string();
        let (impl_generics, type_generics, where_clause) = self.generics.split_for_impl();
        let members: Vec<_> = self.model.fields.iter().map(|field| &field.member).collect();
        let debug = match self.model.shape {
            Shape::Tuple => quote! {
                ::core::fmt::Formatter::debug_tuple(formatter, #name_string)#(.field(&self.#members))*.finish()
            },
            Shape::Named | Shape::Unit => {
                let names = members.iter().map(|member| match member {
                    Member::Named(name) => name.unraw().to_string(),
                    Member::Unnamed(index) => index.index.to_string(),
                });
                quote! {
                    ::core::fmt::Formatter::debug_struct(formatter, #name_string)
                        #(.field(#names, &self.#members))*
                        .finish()
                }
            }
        };
        quote! {
            #[automatically_derived]
            impl #impl_generics ::core::clone::Clone for #name #type_generics #where_clause {
                fn clone(&self) -> Self {
                    *self
                }
            }

            #[automatically_derived]
            impl #impl_generics ::core::marker::Copy for #name #type_generics #where_clause {}

            #[automatically_derived]
            impl #impl_generics ::core::fmt::Debug for #name #type_generics #where_clause {
                fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    #debug
                }
            }
        }
    }

    /// Whether type parameters and lifetimes may be left unused by the fields that take part.
    fn has_phantom(&self) -> bool {
        self.model.generics.params.iter().any(|parameter| !matches!(parameter, GenericParam::Const(_)))
    }

    /// The phantom field's name, where fields have names.
    fn phantom(&self) -> Option<Ident> {
        (self.model.shape != Shape::Tuple).then(|| format_ident!("__phantom"))
    }
}

/// The struct's generics, and for types of which the look does not tell, that they can be fields: so the compiler complains
/// of a wrong one once, at the field, and not wherever the expansion uses it. Generic types speak through their own bounds.
pub(crate) fn bounded(model: &Gradient<'_>) -> Generics {
    let mut generics = model.generics.clone();
    for field in &model.fields {
        let ty = field.ty;
        let krate = respanned(model.krate.to_token_stream(), ty.span());
        if !looks_like_tensor(ty) && !field.is_generic(model.generics) {
            let bound = quote_spanned! {ty.span()=> #ty: #krate::__private::schema::gradient::Field };
            generics.make_where_clause().predicates.push(syn::parse_quote!(#bound));
        }
    }
    generics
}

/// The same tokens, for messages at `span`.
fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            token.set_span(token.span().located_at(span));
            token
        })
        .collect()
}

fn unused_lifetime(generics: &Generics) -> Lifetime {
    let mut name = String::from("'bytes");
    while generics.lifetimes().any(|parameter| parameter.lifetime.to_string() == name) {
        name.push('_');
    }
    Lifetime::new(&name, Span::call_site())
}
