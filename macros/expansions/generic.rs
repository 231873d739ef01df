///A [`Layer`] in received bytes: what `Layer::view` returns. Each field refers to its tensor.
#[allow(dead_code, private_bounds, trivial_bounds, unused_qualifications)]
pub(crate) struct LayerView<'bytes_, 'bytes, T: Element = f32, A, M>
where
    A: Gradient,
    Other: crate::renamed::__private::schema::gradient::Field,
{
    weight: <Weights<
        T,
    > as crate::renamed::__private::schema::gradient::Field>::View<'bytes_>,
    inner: <A as crate::renamed::__private::schema::gradient::Field>::View<'bytes_>,
    other: <Other as crate::renamed::__private::schema::gradient::Field>::View<'bytes_>,
    #[doc(hidden)]
    __phantom: ::core::marker::PhantomData<fn() -> Layer<'bytes, T, A, M>>,
}
#[allow(private_bounds, trivial_bounds, unused_qualifications)]
const _: () = {
    use crate::renamed::__private::schema as __schema;
    #[automatically_derived]
    impl<'bytes_, 'bytes, T: Element, A, M> ::core::clone::Clone
    for LayerView<'bytes_, 'bytes, T, A, M>
    where
        A: Gradient,
        Other: crate::renamed::__private::schema::gradient::Field,
    {
        fn clone(&self) -> Self {
            *self
        }
    }
    #[automatically_derived]
    impl<'bytes_, 'bytes, T: Element, A, M> ::core::marker::Copy
    for LayerView<'bytes_, 'bytes, T, A, M>
    where
        A: Gradient,
        Other: crate::renamed::__private::schema::gradient::Field,
    {}
    #[automatically_derived]
    impl<'bytes_, 'bytes, T: Element, A, M> ::core::fmt::Debug
    for LayerView<'bytes_, 'bytes, T, A, M>
    where
        A: Gradient,
        Other: crate::renamed::__private::schema::gradient::Field,
    {
        fn fmt(
            &self,
            formatter: &mut ::core::fmt::Formatter<'_>,
        ) -> ::core::fmt::Result {
            ::core::fmt::Formatter::debug_struct(formatter, "LayerView")
                .field("weight", &self.weight)
                .field("inner", &self.inner)
                .field("other", &self.other)
                .finish()
        }
    }
    #[automatically_derived]
    impl<'bytes, T: Element, A, M> __schema::Gradient for Layer<'bytes, T, A, M>
    where
        A: Gradient,
        Other: crate::renamed::__private::schema::gradient::Field,
    {
        const LAYOUT: &'static __schema::Layout = &__schema::Layout::new(
            "Layer",
            &[
                __schema::layout::Field {
                    name: "weight",
                    kind: <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                        <Weights<T> as __schema::gradient::Field>::Kind,
                        Weights<T>,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "inner",
                    kind: <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                        <A as __schema::gradient::Field>::Kind,
                        A,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "other",
                    kind: <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                        <Other as __schema::gradient::Field>::Kind,
                        Other,
                    >>::KIND,
                },
            ],
        );
        type View<'__bytes> = LayerView<'__bytes, 'bytes, T, A, M>;
        fn visit<__V: __schema::FieldVisitor>(
            &mut self,
            visitor: &mut __V,
        ) -> ::core::result::Result<(), __V::Error> {
            let fields = <Self as __schema::Gradient>::LAYOUT.fields;
            <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                <Weights<T> as __schema::gradient::Field>::Kind,
                Weights<T>,
            >>::visit(
                &__schema::operation::Sum,
                &mut self.weight,
                &fields[0usize],
                visitor,
            )?;
            <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                <A as __schema::gradient::Field>::Kind,
                A,
            >>::visit(
                &__schema::operation::Sum,
                &mut self.inner,
                &fields[1usize],
                visitor,
            )?;
            <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                <Other as __schema::gradient::Field>::Kind,
                Other,
            >>::visit(
                &__schema::operation::Sum,
                &mut self.other,
                &fields[2usize],
                visitor,
            )?;
            ::core::result::Result::Ok(())
        }
        #[inline]
        fn parts<'__bytes, __P: __schema::gradient::Parts<'__bytes>>(
            &'__bytes self,
            parts: &mut __P,
        ) {
            <Weights<T> as __schema::gradient::Field>::parts(&self.weight, parts);
            <A as __schema::gradient::Field>::parts(&self.inner, parts);
            <Other as __schema::gradient::Field>::parts(&self.other, parts);
        }
        #[inline]
        fn read<'__bytes>(
            reader: &mut __schema::gradient::Reader<'__bytes>,
        ) -> ::core::result::Result<
            LayerView<'__bytes, 'bytes, T, A, M>,
            __schema::gradient::ViewError,
        > {
            ::core::result::Result::Ok(LayerView {
                weight: <Weights<
                    T,
                > as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Layer",
                        field: "weight",
                    },
                )?,
                inner: <A as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Layer",
                        field: "inner",
                    },
                )?,
                other: <Other as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Layer",
                        field: "other",
                    },
                )?,
                __phantom: ::core::marker::PhantomData,
            })
        }
    }
};
