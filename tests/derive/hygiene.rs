//! Derived code names everything by its full path, whatever the names around it mean.

use gradwire::{Equivalence, Gradient};

pub(crate) use gradwire as renamed;

/// No prelude, and names from it that mean something else.
mod bare {
    #![no_implicit_prelude]
    #![allow(dead_code, non_upper_case_globals)]

    struct Vec;
    struct Box;
    struct String;
    enum Option {}
    enum Result {}
    trait Copy {}
    trait Clone {}
    trait Gradient {}
    trait Equivalence {}
    mod core {}
    mod std {}
    mod schema {}
    fn drop() {}
    const Ok: u8 = 0;

    #[::std::prelude::v1::derive(::gradwire::Gradient)]
    #[gradient(reduce = Average)]
    pub(super) struct Model {
        pub(super) weight: ::std::vec::Vec<f32>,
        #[gradient(reduce = Max, wire = bf16)]
        pub(super) bias: [f32; 2],
        pub(super) inner: Inner,
    }

    impl Model {
        pub(super) const LAYOUT: u8 = 1;
        pub(super) const FINGERPRINT: u8 = 2;

        pub(super) fn visit(&self) {}
    }

    #[::std::prelude::v1::derive(::gradwire::Gradient)]
    pub(super) struct Inner(pub(super) u64);

    #[::std::prelude::v1::derive(
        ::gradwire::Equivalence,
        ::std::clone::Clone,
        ::std::marker::Copy,
        ::std::cmp::PartialEq,
        ::std::fmt::Debug
    )]
    pub(super) struct Sample {
        pub(super) label: u8,
        pub(super) values: [i16; 2],
    }
}

#[test]
fn names_around_do_not_matter() {
    let model = bare::Model { weight: vec![1.0, 2.0], bias: [3.0, 4.0], inner: bare::Inner(5) };
    assert_eq!((bare::Model::LAYOUT, bare::Model::FINGERPRINT), (1, 2));
    model.visit();
    assert_eq!(<bare::Model as Gradient>::LAYOUT.tensors, 3);
    assert_eq!(model.header().total_length(), 5 * 64);
    let sample = bare::Sample { label: 1, values: [2, 3] };
    let mut bytes = [0; 5];
    sample.pack(&mut bytes);
    assert_eq!(bare::Sample::unpack(&bytes), Ok(sample));
}

/// Fields that a macro writes, of types that a macro names.
macro_rules! model {
    ($name:ident: $($field:ident: $type:ty = $operation:ident),* $(,)?) => {
        #[derive(gradwire::Gradient)]
        struct $name {
            $(#[gradient(reduce = $operation)] $field: $type,)*
            last: $crate::models::Head,
        }
    };
}

model!(FromMacro: weight: Vec<[f32; 2]> = Average, count: u32 = Sum, r#fn: [u8; 3] = BitwiseOr);

#[test]
fn macros_may_write_fields() {
    let model = FromMacro {
        weight: vec![[1.0, 2.0]],
        count: 3,
        r#fn: [4; 3],
        last: crate::models::Head { weight: vec![], r#type: 5 },
    };
    let names: Vec<_> = FromMacro::LAYOUT.fields.iter().map(|field| field.name).collect();
    assert_eq!(names, ["weight", "count", "fn", "last"]);
    assert_eq!(model.weight.len() + model.r#fn.len() + model.last.weight.len(), 4);
    assert_eq!(model.count, 3);
}

#[derive(gradwire::Gradient)]
#[gradient(crate = "crate::hygiene::renamed")]
struct Renamed {
    weight: Vec<f32>,
}

#[derive(gradwire::Equivalence, Clone, Copy)]
#[equivalence(crate = "self::renamed")]
struct RenamedToo {
    value: u32,
}

#[test]
fn the_crate_may_have_another_name() {
    assert_eq!(Renamed { weight: vec![1.0] }.header().total_length(), 3 * 64);
    assert_eq!(RenamedToo::PACKED_SIZE, size_of_val(&RenamedToo { value: 1 }.value));
}

/// Structs inside functions, with bounds in a where clause and a lifetime of their own.
#[test]
fn structs_may_be_local() {
    #[derive(Gradient)]
    struct Local<'bytes, T>
    where
        T: gradwire_schema::Float,
    {
        weight: Box<[T]>,
        #[gradient(skip)]
        name: &'bytes str,
    }

    let local = Local { weight: vec![1.0_f64].into(), name: "local" };
    assert_eq!(local.name.len() + local.weight.len(), 6);
    let mut bytes = Vec::new();
    local.for_each_part(|part| bytes.extend_from_slice(part));
    assert_eq!(bytes.len(), 3 * 64);
    assert!(format!("{:?}", Local::<f64>::LAYOUT).contains("weight"));
}
