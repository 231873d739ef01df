//! Performance tables of Gradwire. `gradwire-bench --help` lists them.
//!
//! A bench prints a table for readers, or CSV for programs. It asserts nothing about speed.

pub mod all_reduce;
mod counting;
pub mod kernels;
pub mod wire;
