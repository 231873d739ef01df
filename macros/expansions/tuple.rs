///A [`Pair`] in received bytes: what `Pair::view` returns. Each field refers to its tensor.
#[allow(dead_code, private_bounds, trivial_bounds, unused_qualifications)]
struct PairView<'bytes>(
    <Vec<f32> as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
    (),
    pub <Box<[u16; 5]> as ::gradwire::__private::schema::gradient::Field>::View<'bytes>,
);
#[allow(private_bounds, trivial_bounds, unused_qualifications)]
const _: () = {
    use ::gradwire::__private::schema as __schema;
    #[automatically_derived]
    impl<'bytes> ::core::clone::Clone for PairView<'bytes> {
        fn clone(&self) -> Self {
            *self
        }
    }
    #[automatically_derived]
    impl<'bytes> ::core::marker::Copy for PairView<'bytes> {}
    #[automatically_derived]
    impl<'bytes> ::core::fmt::Debug for PairView<'bytes> {
        fn fmt(
            &self,
            formatter: &mut ::core::fmt::Formatter<'_>,
        ) -> ::core::fmt::Result {
            ::core::fmt::Formatter::debug_tuple(formatter, "PairView")
                .field(&self.0)
                .field(&self.2)
                .finish()
        }
    }
    #[automatically_derived]
    impl __schema::Gradient for Pair {
        const LAYOUT: &'static __schema::Layout = &__schema::Layout::new(
            "Pair",
            &[
                __schema::layout::Field {
                    name: "0",
                    kind: <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                        <Vec<f32> as __schema::gradient::Field>::Kind,
                        Vec<f32>,
                    >>::KIND,
                },
                __schema::layout::Field {
                    name: "2",
                    kind: <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                        <Box<[u16; 5]> as __schema::gradient::Field>::Kind,
                        Box<[u16; 5]>,
                    >>::KIND,
                },
            ],
        );
        type View<'__bytes> = PairView<'__bytes>;
        fn visit<__V: __schema::FieldVisitor>(
            &mut self,
            visitor: &mut __V,
        ) -> ::core::result::Result<(), __V::Error> {
            let fields = <Self as __schema::Gradient>::LAYOUT.fields;
            <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                <Vec<f32> as __schema::gradient::Field>::Kind,
                Vec<f32>,
            >>::visit(&__schema::operation::Sum, &mut self.0, &fields[0usize], visitor)?;
            <__schema::operation::Sum as __schema::gradient::DefaultReduction<
                <Box<[u16; 5]> as __schema::gradient::Field>::Kind,
                Box<[u16; 5]>,
            >>::visit(&__schema::operation::Sum, &mut self.2, &fields[1usize], visitor)?;
            ::core::result::Result::Ok(())
        }
        #[inline]
        fn parts<'__bytes, __P: __schema::gradient::Parts<'__bytes>>(
            &'__bytes self,
            parts: &mut __P,
        ) {
            <Vec<f32> as __schema::gradient::Field>::parts(&self.0, parts);
            <Box<[u16; 5]> as __schema::gradient::Field>::parts(&self.2, parts);
        }
        #[inline]
        fn read<'__bytes>(
            reader: &mut __schema::gradient::Reader<'__bytes>,
        ) -> ::core::result::Result<PairView<'__bytes>, __schema::gradient::ViewError> {
            ::core::result::Result::Ok(PairView {
                0: <Vec<
                    f32,
                > as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Pair",
                        field: "0",
                    },
                )?,
                1: (),
                2: <Box<
                    [u16; 5],
                > as __schema::gradient::Field>::read(
                    reader,
                    __schema::gradient::TensorName {
                        structure: "Pair",
                        field: "2",
                    },
                )?,
            })
        }
    }
};
