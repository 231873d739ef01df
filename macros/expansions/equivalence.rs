#[allow(unused_qualifications)]
const _: () = {
    use ::gradwire::__private::schema as __schema;
    #[automatically_derived]
    impl<T: Equivalence> __schema::Equivalence for Sample<T> {
        const PACKED_SIZE: usize = 0 + <u8 as __schema::Equivalence>::PACKED_SIZE
            + <bool as __schema::Equivalence>::PACKED_SIZE
            + <[T; 4] as __schema::Equivalence>::PACKED_SIZE;
        const FINGERPRINT: u64 = __schema::layout::Fingerprint::new()
            .number(3u64)
            .name("label")
            .number(<u8 as __schema::Equivalence>::FINGERPRINT)
            .name("type")
            .number(<bool as __schema::Equivalence>::FINGERPRINT)
            .name("values")
            .number(<[T; 4] as __schema::Equivalence>::FINGERPRINT)
            .finish();
        fn pack(&self, bytes: &mut [u8]) {
            let mut offset = 0;
            <u8 as __schema::Equivalence>::pack(
                &self.label,
                __schema::equivalence::pack_field(
                    <u8 as __schema::Equivalence>::PACKED_SIZE,
                    bytes,
                    &mut offset,
                ),
            );
            <bool as __schema::Equivalence>::pack(
                &self.r#type,
                __schema::equivalence::pack_field(
                    <bool as __schema::Equivalence>::PACKED_SIZE,
                    bytes,
                    &mut offset,
                ),
            );
            <[T; 4] as __schema::Equivalence>::pack(
                &self.values,
                __schema::equivalence::pack_field(
                    <[T; 4] as __schema::Equivalence>::PACKED_SIZE,
                    bytes,
                    &mut offset,
                ),
            );
        }
        fn unpack(
            bytes: &[u8],
        ) -> ::core::result::Result<Self, __schema::equivalence::InvalidValue> {
            let mut offset = 0;
            ::core::result::Result::Ok(Self {
                label: __schema::equivalence::unpack_field(
                    <u8 as __schema::Equivalence>::PACKED_SIZE,
                    <u8 as __schema::Equivalence>::unpack,
                    bytes,
                    &mut offset,
                )?,
                r#type: __schema::equivalence::unpack_field(
                    <bool as __schema::Equivalence>::PACKED_SIZE,
                    <bool as __schema::Equivalence>::unpack,
                    bytes,
                    &mut offset,
                )?,
                values: __schema::equivalence::unpack_field(
                    <[T; 4] as __schema::Equivalence>::PACKED_SIZE,
                    <[T; 4] as __schema::Equivalence>::unpack,
                    bytes,
                    &mut offset,
                )?,
            })
        }
    }
};
