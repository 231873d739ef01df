//! Sums gradients between processes.

mod error;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod partition;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod pattern;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod plan;
mod rank;

pub use error::{Call, Error, Result};
pub use plan::Determinism;
pub use rank::Rank;
