//! Sums gradients between processes.

mod error;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod partition;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod pattern;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod plan;
mod rank;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod select;

pub use error::{Call, Error, Result};
#[cfg(feature = "derive")]
pub use gradwire_macros::{Equivalence, Gradient};
pub use gradwire_schema::{Equivalence, Gradient};
pub use plan::Determinism;
pub use rank::Rank;

/// What derived code names. Not for people.
#[doc(hidden)]
pub mod __private {
    pub use gradwire_schema as schema;
}
