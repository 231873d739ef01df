//! See `gradwire_schema::fuzz::signature`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gradwire_schema::fuzz::signature(bytes));
