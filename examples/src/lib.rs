//! The parts of the larger example programs. [`digits`] is what `cargo run --release --bin digits` is made of.
#![forbid(unsafe_code)]

pub mod digits;

/// The code in the README is compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
