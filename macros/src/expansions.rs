//! What the derives write, as files to read: `macros/expansions/*.rs`. `GRADWIRE_BLESS=1` writes them anew.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use std::path::Path;

#[test]
fn of_a_struct_with_everything() {
    gradient(
        "everything",
        quote! {
            /// A network of two layers.
            #[gradient(reduce = Average)]
            pub struct Mlp<const H: usize> {
                /// The first layer's weights.
                pub w1: Box<[[f32; H]]>,
                b1: [f32; H],
                #[gradient(wire = bf16)]
                w2: Vec<f32>,
                #[gradient(reduce = Max)]
                grad_norm: f32,
                #[gradient(reduce = crate::Clip, rename = "extra")]
                r#type: Vec<f32>,
                head: Head,
                #[gradient(skip)]
                step: usize,
            }
        },
    );
}

#[test]
fn of_a_tuple() {
    gradient(
        "tuple",
        quote! {
            struct Pair(Vec<f32>, #[gradient(skip)] String, pub Box<[u16; 5]>);
        },
    );
}

#[test]
fn of_a_generic_struct_in_a_renamed_crate() {
    let expansion = gradient(
        "generic",
        quote! {
            #[gradient(crate = "crate::renamed")]
            pub(crate) struct Layer<'bytes, T: Element = f32, A, M>
            where
                A: Gradient,
            {
                weight: Weights<T>,
                inner: A,
                other: Other,
                marker: PhantomData<&'bytes M>,
            }
        },
    );
    assert!(!expansion.contains(":: gradwire"), "the crate is called `crate::renamed`");
}

#[test]
fn of_an_equivalence() {
    equivalence(
        "equivalence",
        quote! {
            struct Sample<T: Equivalence> {
                label: u8,
                r#type: bool,
                values: [T; 4],
            }
        },
    );
    equivalence(
        "equivalence_of_nothing",
        quote! {
            #[equivalence(crate = "crate::renamed")]
            struct Marker;
        },
    );
}

#[test]
fn of_an_equivalence_without_data() {
    equivalence(
        "equivalence_of_an_enum",
        quote! {
            #[repr(u8)]
            enum State {
                Ready = 1,
                r#async,
            }
        },
    );
    equivalence(
        "equivalence_of_a_packed_struct",
        quote! {
            #[repr(C, packed(2))]
            struct Record(u8, u32);
        },
    );
}

/// Returns the tokens.
fn gradient(name: &str, input: TokenStream) -> String {
    blessed(name, crate::gradient(&syn::parse2(input).unwrap()).unwrap())
}

fn equivalence(name: &str, input: TokenStream) -> String {
    blessed(name, crate::equivalence(&syn::parse2(input).unwrap()).unwrap())
}

fn blessed(name: &str, expansion: TokenStream) -> String {
    assert!(!mentions_unsafe(expansion.clone()), "derived code is safe code");
    let tokens = expansion.to_string();
    let text = prettyplease::unparse(&syn::parse2(expansion).unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("expansions").join(name).with_extension("rs");
    if std::env::var_os("GRADWIRE_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{name}: read what changed, then bless it with GRADWIRE_BLESS=1");
    tokens
}

fn mentions_unsafe(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "unsafe",
        TokenTree::Group(group) => mentions_unsafe(group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}
