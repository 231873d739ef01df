//! Performance tables of Gradwire. `gradwire-bench --help` lists them.
//!
//! A bench prints a table for readers, or CSV for programs. It asserts nothing about speed.

pub mod collectives;
mod counting;
pub mod kernels;
mod options;
pub mod p2p;
mod peers;
mod ranks;
mod table;
pub mod wire;

pub use options::Options;
