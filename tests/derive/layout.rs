//! The layout tree, and visits that are held to it.

use crate::models::{Generic, Head, Mlp, Tuple, mlp};
use gradwire::Gradient;
use gradwire_schema::gradient::{Parts, Reader, StaticReduction, ViewError};
use gradwire_schema::layout::{
    CheckError, Checked, Field, FieldKind, Layout, LayoutError, Tensor, for_each_length,
};
use gradwire_schema::operation::{Max, Sum};
use gradwire_schema::{ConvertTo, Datatype, Element, FieldVisitor, Reduction};
use half::bf16;

/// Notes what it sees: `w1 f32 as f32 x6`.
#[derive(Default)]
struct Notes(Vec<String>);

impl FieldVisitor for Notes {
    type Error = String;

    fn tensor<T, W, R>(
        &mut self,
        field: &'static Field,
        tensor: &'static Tensor,
        values: &mut [T],
        reduction: &R,
    ) -> Result<(), String>
    where
        T: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        assert_eq!(field.kind, FieldKind::Tensor(tensor_copy(tensor)));
        self.0.push(format!(
            "{} {} as {} x{} {} {:?}{}",
            field.name,
            T::DATATYPE.name(),
            W::DATATYPE.name(),
            values.len(),
            reduction.properties().name,
            tensor.shape,
            if tensor.run_time_length { " run-time" } else { "" },
        ));
        Ok(())
    }

    fn enter(&mut self, field: &'static Field) -> Result<(), String> {
        self.0.push(format!("enter {}", field.name));
        Ok(())
    }

    fn leave(&mut self) -> Result<(), String> {
        self.0.push("leave".to_owned());
        Ok(())
    }
}

fn tensor_copy(tensor: &Tensor) -> Tensor {
    let Tensor { datatype, wire, operation, operation_name, shape, run_time_length } = *tensor;
    Tensor { datatype, wire, operation, operation_name, shape, run_time_length }
}

fn visit<G: Gradient>(gradient: &mut G) -> Result<Vec<String>, CheckError<String>> {
    let mut checked = Checked::new(G::LAYOUT, Notes::default());
    gradient.visit(&mut checked)?;
    checked.finish()?;
    Ok(checked.into_inner().0)
}

#[test]
fn every_tensor_is_seen_in_order() {
    assert_eq!(
        visit(&mut mlp(1)).unwrap(),
        [
            "w1 f32 as f32 x6 average [3] run-time",
            "b1 f32 as f32 x3 average [3]",
            "w2 f32 as bf16 x20 average [] run-time",
            "grad_norm f32 as f32 x1 max []",
            "samples u64 as u64 x1 sum []",
            "enter head",
            "head.weight bf16 as bf16 x6 sum [2, 3] run-time",
            "type i8 as i8 x1 sum []",
            "leave",
        ]
    );
}

#[test]
fn tuples_and_generics_are_seen() {
    let mut tuple = Tuple(vec![1.0, 2.0], "stays", Box::new([1, 2, 3, 4, 5]));
    assert_eq!(visit(&mut tuple).unwrap(), ["0 f64 as f64 x2 sum [] run-time", "2 u16 as u16 x5 sum [5]"]);
    let mut generic = Generic::<bf16, i32, Tuple, String> {
        floats: vec![bf16::ONE],
        one: 7,
        inner: tuple,
        marker: std::marker::PhantomData,
    };
    assert_eq!(
        visit(&mut generic).unwrap(),
        [
            "floats bf16 as bf16 x1 average [] run-time",
            "one i32 as i32 x1 first []",
            "enter inner",
            "0 f64 as f64 x2 sum [] run-time",
            "2 u16 as u16 x5 sum [5]",
            "leave",
        ]
    );
}

#[test]
fn layouts_count_their_tensors() {
    let layout = Mlp::<3>::LAYOUT;
    assert_eq!((layout.name, layout.tensors, layout.run_time_lengths), ("Mlp", 7, 3));
    assert_eq!(
        layout.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(" "),
        "w1 b1 w2 grad_norm samples head"
    );
    assert_eq!(layout.fields[5].kind, FieldKind::Nested(Head::LAYOUT));
}

#[test]
fn run_time_lengths_are_the_outermost_extents() {
    let mut lengths = Vec::new();
    for_each_length(&mut mlp(1), |length| lengths.push(length)).unwrap();
    assert_eq!(lengths, [2, 20, 1]);
}

#[test]
fn structs_nested_too_deep_are_told() {
    #[derive(Gradient, Default)]
    struct Wrap<A: Gradient> {
        inner: A,
    }
    #[derive(Gradient, Default)]
    struct Leaf(f32);
    type Five<A> = Wrap<Wrap<Wrap<Wrap<Wrap<A>>>>>;

    assert_eq!(visit(&mut Five::<Five<Five<Leaf>>>::default()).unwrap().len(), 15 + 1 + 15);
    let error = visit(&mut Wrap::<Five<Five<Five<Leaf>>>>::default()).unwrap_err();
    assert_eq!(error, CheckError::Layout(LayoutError::TooDeep { field: "inner" }));
}

mod fingerprints {
    use super::*;

    macro_rules! structs {
        ($($module:ident { $($body:tt)* })*) => {
            $(mod $module {
                #[derive(gradwire::Gradient)]
                #[allow(dead_code)]
                pub(super) struct Model { $($body)* }
            })*

            fn all() -> Vec<(&'static str, u64)> {
                vec![$((stringify!($module), <$module::Model as Gradient>::FINGERPRINT)),*]
            }
        };
    }

    structs! {
        plain { a: Vec<f32>, b: [f32; 4], }
        other_name { c: Vec<f32>, b: [f32; 4], }
        other_order { b: [f32; 4], a: Vec<f32>, }
        other_datatype { a: Vec<f64>, b: [f32; 4], }
        other_extent { a: Vec<f32>, b: [f32; 5], }
        other_rank { a: Vec<f32>, b: [[f32; 4]; 1], }
        other_items { a: Vec<[f32; 1]>, b: [f32; 4], }
        constant { a: [f32; 1], b: [f32; 4], }
        run_time { a: Vec<f32>, b: Vec<[f32; 4]>, }
        other_operation { #[gradient(reduce = Max)] a: Vec<f32>, b: [f32; 4], }
        other_wire { #[gradient(wire = bf16)] a: Vec<f32>, b: [f32; 4], }
        fewer { a: Vec<f32>, }
        nested { a: Vec<f32>, b: super::plain::Model, }
        nested_otherwise { a: Vec<f32>, b: super::other_wire::Model, }
    }

    mod renamed {
        #[derive(gradwire::Gradient)]
        #[allow(dead_code)]
        pub(super) struct Another {
            #[gradient(rename = "a")]
            first: Box<[f32]>,
            #[gradient(skip)]
            local: String,
            #[gradient(rename = "b", reduce = Sum)]
            second: Box<[f32; 4]>,
        }
    }

    #[test]
    fn differ_with_everything_that_ranks_must_agree_on() {
        let mut all = all();
        all.sort_by_key(|(_, fingerprint)| *fingerprint);
        for pair in all.windows(2) {
            assert_ne!(pair[0].1, pair[1].1, "{} and {}", pair[0].0, pair[1].0);
        }
    }

    #[test]
    fn do_not_differ_with_what_changes_no_byte() {
        assert_eq!(<renamed::Another as Gradient>::FINGERPRINT, <plain::Model as Gradient>::FINGERPRINT);
    }
}

/// Gradients written by hand that show other tensors than their layout says.
mod lies {
    use super::*;

    const HONEST: Tensor = Tensor {
        datatype: Datatype::F32,
        wire: Datatype::F32,
        operation: Sum::ID,
        operation_name: "sum",
        shape: &[2],
        run_time_length: false,
    };
    const FIELDS: &[Field; 3] = &[
        Field { name: "a", kind: FieldKind::Tensor(HONEST) },
        Field {
            name: "b",
            kind: FieldKind::Nested(&Layout::new(
                "Inner",
                &[Field {
                    name: "c",
                    kind: FieldKind::Tensor(Tensor { shape: &[3], run_time_length: true, ..HONEST }),
                }],
            )),
        },
        Field { name: "d", kind: FieldKind::Tensor(Tensor { wire: Datatype::Bf16, ..HONEST }) },
    ];

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Lie {
        None,
        Swapped,
        Twice,
        LeftOut,
        Ended,
        Datatype,
        Wire,
        Operation,
        Length,
        ItemLength,
        TensorForStruct,
        StructForTensor,
        NoLeave,
        LeaveTwice,
        LeaveEarly,
        ForEver,
    }

    struct Liar(Lie);

    impl Gradient for Liar {
        const LAYOUT: &'static Layout = &Layout::new("Liar", FIELDS);
        type View<'a> = ();

        fn visit<V: FieldVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
            let [a, b, d] = FIELDS;
            let FieldKind::Nested(inner) = b.kind else { return Ok(()) };
            let c = &inner.fields[0];
            let (two, six) = (&mut [1.0_f32, 2.0], &mut [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
            let lie = self.0;
            let tensor: &'static Tensor = &HONEST;
            match lie {
                Lie::Swapped => visitor.tensor::<f32, f32, _>(d, tensor, two, &Sum)?,
                Lie::LeftOut => {}
                Lie::Datatype => visitor.tensor::<u32, u32, _>(a, tensor, &mut [1, 2], &Sum)?,
                Lie::Wire => visitor.tensor::<f32, bf16, _>(a, tensor, two, &Sum)?,
                Lie::Operation => visitor.tensor::<f32, f32, _>(a, tensor, two, &Max)?,
                Lie::Length => visitor.tensor::<f32, f32, _>(a, tensor, six, &Sum)?,
                Lie::StructForTensor => visitor.enter(a)?,
                Lie::ForEver => loop {
                    visitor.enter(b)?;
                },
                _ => visitor.tensor::<f32, f32, _>(a, tensor, two, &Sum)?,
            }
            if lie == Lie::Twice {
                visitor.tensor::<f32, f32, _>(a, tensor, two, &Sum)?;
            }
            if lie == Lie::TensorForStruct {
                return visitor.tensor::<f32, f32, _>(b, tensor, two, &Sum);
            }
            visitor.enter(b)?;
            if lie == Lie::LeaveEarly {
                visitor.leave()?;
            }
            let items = if lie == Lie::ItemLength { &mut six[..4] } else { &mut six[..] };
            visitor.tensor::<f32, f32, _>(c, tensor, items, &Sum)?;
            if lie == Lie::NoLeave {
                return Ok(());
            }
            visitor.leave()?;
            if lie == Lie::LeaveTwice {
                visitor.leave()?;
            }
            if lie == Lie::Ended {
                return Ok(());
            }
            visitor.tensor::<f32, bf16, _>(d, tensor, two, &Sum)?;
            if lie == Lie::Twice { visitor.leave() } else { Ok(()) }
        }

        fn parts<'a, P: Parts<'a>>(&'a self, _: &mut P) {}

        fn read<'a>(_: &mut Reader<'a>) -> Result<(), ViewError> {
            Ok(())
        }
    }

    #[test]
    fn are_told() {
        let layout = |lie| match visit(&mut Liar(lie)) {
            Ok(_) => None,
            Err(CheckError::Layout(error)) => Some(error),
            Err(other) => panic!("{other:?}"),
        };
        let both = Datatype::F32;
        for (lie, error) in [
            (Lie::Swapped, LayoutError::Order { expected: "a", found: "d" }),
            (Lie::Twice, LayoutError::Order { expected: "b", found: "a" }),
            (Lie::LeftOut, LayoutError::Order { expected: "a", found: "b" }),
            (Lie::Ended, LayoutError::Missing { field: "d" }),
            (Lie::Datatype, LayoutError::Datatype { field: "a", expected: both, found: Datatype::U32 }),
            (Lie::Wire, LayoutError::Wire { field: "a", expected: both, found: Datatype::Bf16 }),
            (Lie::Operation, LayoutError::Operation { field: "a", expected: "sum" }),
            (Lie::Length, LayoutError::Length { field: "a", elements: 2, run_time_length: false, found: 6 }),
            (
                Lie::ItemLength,
                LayoutError::Length { field: "c", elements: 3, run_time_length: true, found: 4 },
            ),
            (Lie::TensorForStruct, LayoutError::Kind { field: "b", expected: "a nested struct" }),
            (Lie::StructForTensor, LayoutError::Kind { field: "a", expected: "a tensor" }),
            (Lie::NoLeave, LayoutError::Missing { field: "d" }),
            (Lie::LeaveTwice, LayoutError::Missing { field: "d" }),
            (Lie::LeaveEarly, LayoutError::Missing { field: "c" }),
            (Lie::ForEver, LayoutError::Order { expected: "a", found: "b" }),
        ] {
            assert_eq!(layout(lie), Some(error), "{lie:?}");
        }
        assert_eq!(layout(Lie::None), None);
    }

    #[test]
    fn are_told_by_whoever_visits() {
        let error = for_each_length(&mut Liar(Lie::Datatype), |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "field `a` is f32 in the layout, but `visit` shows u32");
        let error = Liar(Lie::None).encode(&mut [0; 128], &mut [std::io::IoSlice::new(&[]); 7]).unwrap_err();
        assert_eq!(error.to_string(), "`Liar` shows other tensors than its layout has");
    }
}
