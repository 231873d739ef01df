//! The contract of [`Transport`](gradwire_transport::Transport) as tests, to be mounted on each backend.
//!
//! A backend says how to make its endpoints ([`Backend`]); [`conformance_suite!`](crate::conformance_suite) turns
//! each test of the suite into a `#[test]` for it:
//!
//! ```ignore
//! mod sim {
//!     gradwire_tests::conformance_suite!(super::SimBackend);
//! }
//! ```
//!
//! All endpoints of a test live in one process and are driven by one thread, in turn, until something becomes true
//! ([`Cluster::until`]). A test says which capabilities it needs; where they lack it prints that it was skipped.
//! The bytes differ by sender, purpose and position, so that nothing can take the place of something else.
//!
//! What is not here: peers that die for real, and raw bytes on the wire; the backends' own tests do that.

pub mod atomic;
mod backend;
mod cluster;
pub mod connection;
pub mod loss;
mod memory;
pub mod message;
mod node;
mod pattern;
pub mod put;
pub mod random;
pub mod region;
pub mod revoke;
mod suite;
pub mod time;

pub use backend::{Backend, Rest, rest_on_readiness};
pub use cluster::{Cluster, peer};
pub use memory::{MemoryKind, TestMemory};
pub use node::Seen;
pub use pattern::{Random, pattern};
