//! See `gradwire_schema::fuzz::gradient`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gradwire_schema::fuzz::gradient(bytes));
