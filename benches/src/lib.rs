//! Performance tables of Gradwire. `gradwire-bench --help` lists them.
//!
//! A bench prints a table for readers, or CSV for programs. It asserts nothing about speed.

mod counting;
pub mod kernels;
pub mod wire;
