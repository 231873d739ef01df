#[allow(unused_qualifications)]
const _: () = {
    use ::gradwire::__private::schema as __schema;
    #[automatically_derived]
    impl __schema::Equivalence for State {
        const PACKED_SIZE: usize = <u8 as __schema::Equivalence>::PACKED_SIZE;
        const FINGERPRINT: u64 = __schema::layout::Fingerprint::new()
            .name("enum")
            .number(<u8 as __schema::Equivalence>::FINGERPRINT)
            .number(2u64)
            .name("Ready")
            .number(Self::Ready as u64)
            .name("async")
            .number(Self::r#async as u64)
            .finish();
        fn pack(&self, bytes: &mut [u8]) {
            let discriminant = match self {
                Self::Ready => Self::Ready as u8,
                Self::r#async => Self::r#async as u8,
            };
            <u8 as __schema::Equivalence>::pack(&discriminant, bytes);
        }
        fn unpack(
            bytes: &[u8],
        ) -> ::core::result::Result<Self, __schema::equivalence::InvalidValue> {
            match <u8 as __schema::Equivalence>::unpack(bytes)? {
                discriminant if discriminant == Self::Ready as u8 => {
                    ::core::result::Result::Ok(Self::Ready)
                }
                discriminant if discriminant == Self::r#async as u8 => {
                    ::core::result::Result::Ok(Self::r#async)
                }
                _ => {
                    ::core::result::Result::Err(__schema::equivalence::InvalidValue {
                        type_name: "State",
                        offset: 0,
                    })
                }
            }
        }
    }
};
