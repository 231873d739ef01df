#[allow(unused_qualifications)]
const _: () = {
    use crate::renamed::__private::schema as __schema;
    #[automatically_derived]
    impl __schema::Equivalence for Marker {
        const PACKED_SIZE: usize = 0;
        const FINGERPRINT: u64 = __schema::layout::Fingerprint::new()
            .number(0u64)
            .finish();
        fn pack(&self, bytes: &mut [u8]) {
            let _ = bytes;
        }
        fn unpack(
            bytes: &[u8],
        ) -> ::core::result::Result<Self, __schema::equivalence::InvalidValue> {
            let _ = bytes;
            ::core::result::Result::Ok(Self {})
        }
    }
};
