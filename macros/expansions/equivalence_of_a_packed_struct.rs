#[allow(unused_qualifications)]
const _: () = {
    use ::gradwire::__private::schema as __schema;
    #[automatically_derived]
    impl __schema::Equivalence for Record {
        const PACKED_SIZE: usize = 0 + <u8 as __schema::Equivalence>::PACKED_SIZE
            + <u32 as __schema::Equivalence>::PACKED_SIZE;
        const FINGERPRINT: u64 = __schema::layout::Fingerprint::new()
            .number(2u64)
            .name("0")
            .number(<u8 as __schema::Equivalence>::FINGERPRINT)
            .name("1")
            .number(<u32 as __schema::Equivalence>::FINGERPRINT)
            .finish();
        fn pack(&self, bytes: &mut [u8]) {
            let mut offset = 0;
            <u8 as __schema::Equivalence>::pack(
                &{ self.0 },
                __schema::equivalence::pack_field(
                    <u8 as __schema::Equivalence>::PACKED_SIZE,
                    bytes,
                    &mut offset,
                ),
            );
            <u32 as __schema::Equivalence>::pack(
                &{ self.1 },
                __schema::equivalence::pack_field(
                    <u32 as __schema::Equivalence>::PACKED_SIZE,
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
                0: __schema::equivalence::unpack_field(
                    <u8 as __schema::Equivalence>::PACKED_SIZE,
                    <u8 as __schema::Equivalence>::unpack,
                    bytes,
                    &mut offset,
                )?,
                1: __schema::equivalence::unpack_field(
                    <u32 as __schema::Equivalence>::PACKED_SIZE,
                    <u32 as __schema::Equivalence>::unpack,
                    bytes,
                    &mut offset,
                )?,
            })
        }
    }
};
