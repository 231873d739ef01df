//! Performance tables of Gradwire. `gradwire-bench --help` lists them.
//!
//! A bench prints a table for readers, or CSV for programs. It asserts nothing about speed.

pub mod all_reduce;
mod counting;
pub mod kernels;
mod openmpi;
pub mod p2p;
mod ranks;
mod table;
pub mod wire;
