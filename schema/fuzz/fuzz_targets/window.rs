//! See `gradwire_schema::fuzz::window`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gradwire_schema::fuzz::window(bytes));
