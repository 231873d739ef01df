//! Sums gradients between processes.

pub mod bootstrap;
pub mod config;
mod error;
pub mod launch;
mod logging;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod partition;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod pattern;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod plan;
mod rank;
mod secret;
#[allow(dead_code, unused_imports, reason = "until all executors are there")]
mod select;

pub use config::Config;
pub use error::{Call, Error, Result};
#[cfg(feature = "derive")]
pub use gradwire_macros::{Equivalence, Gradient};
pub use gradwire_schema::gradient::wire::{bf16, f16};
pub use gradwire_schema::operation::{Average, Max, Min, Product, Sum};
pub use gradwire_schema::{
    Arithmetic, ConvertTo, Datatype, Element, Equivalence, F8E4m3, F8E5m2, Float, Gradient, Integer,
    InvalidValue, OperationId, Properties, Reduction, gradient, layout, operation,
};
pub use plan::Determinism;
pub use rank::Rank;
pub use secret::JobSecret;

/// What derived code names. Not for people.
#[doc(hidden)]
pub mod __private {
    pub use gradwire_schema as schema;
}
