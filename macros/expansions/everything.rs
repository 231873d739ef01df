///A [`Mlp`] in received bytes: what `Mlp::view` returns. Each field refers to its tensor.
#[allow(dead_code, private_bounds, trivial_bounds, unused_qualifications)]
pub struct MlpView<'bytes, const H: usize>
where
    Head: ::gradwire::__private::schema::gradient::Field,
{
    /// The first layer's weights.
    pub w1: <Box<
        [[f32; H]],
    > as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
    b1: <[f32; H] as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
    w2: <Vec<f32> as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
    grad_norm: <f32 as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
    r#type: <Vec<f32> as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
    head: <Head as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
}
#[allow(private_bounds, trivial_bounds, unused_qualifications)]
const _: () = {
    use ::gradwire::__private::schema as __schema;
    #[automatically_derived]
    impl<'bytes, const H: usize> ::core::clone::Clone for MlpView<'bytes, H>
    where
        Head: ::gradwire::__private::schema::gradient::Field,
    {
        fn clone(&self) -> Self {
            *self
        }
    }
    #[automatically_derived]
    impl<'bytes, const H: usize> ::core::marker::Copy for MlpView<'bytes, H>
    where
        Head: ::gradwire::__private::schema::gradient::Field,
    {}
    #[automatically_derived]
    impl<'bytes, const H: usize> ::core::fmt::Debug for MlpView<'bytes, H>
    where
        Head: ::gradwire::__private::schema::gradient::Field,
    {
        fn fmt(
            &self,
            formatter: &mut ::core::fmt::Formatter<'_>,
        ) -> ::core::fmt::Result {
            ::core::fmt::Formatter::debug_struct(formatter, "MlpView")
                .field("w1", &self.w1)
                .field("b1", &self.b1)
                .field("w2", &self.w2)
                .field("grad_norm", &self.grad_norm)
                .field("type", &self.r#type)
                .field("head", &self.head)
                .finish()
        }
    }
    #[automatically_derived]
    impl<const H: usize> __schema::Gradient for Mlp<H>
    where
        Head: ::gradwire::__private::schema::gradient::Field,
    {
        const LAYOUT: &'static __schema::Layout = &__schema::Layout::new(
            "Mlp",
            &[
                __schema::layout::Field {
                    name: "w1",
                    kind: <__schema::operation::Average as __schema::gradient::DefaultReduction<
                        <Box<[[f32; H]]> as __schema::gradient::Field>::Kind,
                        Box<[[f32; H]]>,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "b1",
                    kind: <__schema::operation::Average as __schema::gradient::DefaultReduction<
                        <[f32; H] as __schema::gradient::Field>::Kind,
                        [f32; H],
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "w2",
                    kind: <__schema::operation::Average as __schema::gradient::TensorReduction<
                        __schema::gradient::wire::bf16,
                        Vec<f32>,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "grad_norm",
                    kind: <__schema::operation::Max as __schema::gradient::TensorReduction<
                        <f32 as __schema::gradient::TensorField>::Element,
                        f32,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "extra",
                    kind: <crate::Clip as __schema::gradient::TensorReduction<
                        <Vec<f32> as __schema::gradient::TensorField>::Element,
                        Vec<f32>,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "head",
                    kind: <__schema::operation::Average as __schema::gradient::DefaultReduction<
                        <Head as __schema::gradient::Field>::Kind,
                        Head,
                    >>::KIND,
                },
            ],
        );
        type View<'__bytes> = MlpView<'__bytes, H>;
        fn visit<__V: __schema::FieldVisitor>(
            &mut self,
            visitor: &mut __V,
        ) -> ::core::result::Result<(), __V::Error> {
            let fields = <Self as __schema::Gradient>::LAYOUT.fields;
            <__schema::operation::Average as __schema::gradient::DefaultReduction<
                <Box<[[f32; H]]> as __schema::gradient::Field>::Kind,
                Box<[[f32; H]]>,
            >>::visit(
                &__schema::operation::Average,
                &mut self.w1,
                &fields[0usize],
                visitor,
            )?;
            <__schema::operation::Average as __schema::gradient::DefaultReduction<
                <[f32; H] as __schema::gradient::Field>::Kind,
                [f32; H],
            >>::visit(
                &__schema::operation::Average,
                &mut self.b1,
                &fields[1usize],
                visitor,
            )?;
            <__schema::operation::Average as __schema::gradient::TensorReduction<
                __schema::gradient::wire::bf16,
                Vec<f32>,
            >>::visit(
                &__schema::operation::Average,
                &mut self.w2,
                &fields[2usize],
                visitor,
            )?;
            <__schema::operation::Max as __schema::gradient::TensorReduction<
                <f32 as __schema::gradient::TensorField>::Element,
                f32,
            >>::visit(
                &__schema::operation::Max,
                &mut self.grad_norm,
                &fields[3usize],
                visitor,
            )?;
            <crate::Clip as __schema::gradient::TensorReduction<
                <Vec<f32> as __schema::gradient::TensorField>::Element,
                Vec<f32>,
            >>::visit(&crate::Clip, &mut self.r#type, &fields[4usize], visitor)?;
            <__schema::operation::Average as __schema::gradient::DefaultReduction<
                <Head as __schema::gradient::Field>::Kind,
                Head,
            >>::visit(
                &__schema::operation::Average,
                &mut self.head,
                &fields[5usize],
                visitor,
            )?;
            ::core::result::Result::Ok(())
        }
        #[inline]
        fn parts<'__bytes, __P: __schema::gradient::Parts<'__bytes>>(
            &'__bytes self,
            parts: &mut __P,
        ) {
            <Box<[[f32; H]]> as __schema::gradient::Field>::parts(&self.w1, parts);
            <[f32; H] as __schema::gradient::Field>::parts(&self.b1, parts);
            <Vec<f32> as __schema::gradient::Field>::parts(&self.w2, parts);
            <f32 as __schema::gradient::Field>::parts(&self.grad_norm, parts);
            <Vec<f32> as __schema::gradient::Field>::parts(&self.r#type, parts);
            <Head as __schema::gradient::Field>::parts(&self.head, parts);
        }
        #[inline]
        fn read<'__bytes>(
            reader: &mut __schema::gradient::Reader<'__bytes>,
        ) -> ::core::result::Result<
            MlpView<'__bytes, H>,
            __schema::gradient::ViewError,
        > {
            ::core::result::Result::Ok(MlpView {
                w1: <Box<
                    [[f32; H]],
                > as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Mlp",
                        field: "w1",
                    },
                )?,
                b1: <[f32; H] as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Mlp",
                        field: "b1",
                    },
                )?,
                w2: <Vec<
                    f32,
                > as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Mlp",
                        field: "w2",
                    },
                )?,
                grad_norm: <f32 as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Mlp",
                        field: "grad_norm",
                    },
                )?,
                r#type: <Vec<
                    f32,
                > as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Mlp",
                        field: "extra",
                    },
                )?,
                head: <Head as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Mlp",
                        field: "head",
                    },
                )?,
            })
        }
    }
};
