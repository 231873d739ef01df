//! Sums gradients between processes.

pub mod bootstrap;
mod buffer;
mod communicator;
pub mod config;
mod direct;
#[cfg(feature = "cli")]
pub mod doctor;
mod driver;
mod engine;
mod error;
mod in_process;
mod init;
mod job;
pub mod launch;
mod logging;
pub mod parameters;
mod partition;
mod pattern;
#[allow(dead_code, unused_imports, reason = "parts serve tests and explanations only")]
mod plan;
mod rank;
mod reduce_local;
mod request;
mod secret;
mod select;
mod transports;
pub mod window;
mod wire_up;

pub use buffer::Buffer;
pub use communicator::{
    AbortHandle, Communicator, Group, Grouped, Message, PerRank, Received, Relation, Source, Sparse, Tag,
};
pub use config::Config;
pub use error::{Call, Error, Result};
#[cfg(feature = "derive")]
pub use gradwire_macros::{Equivalence, Gradient};
pub use gradwire_schema::gradient::wire::{bf16, f16};
pub use gradwire_schema::operation::{
    Average, BitwiseAnd, BitwiseOr, BitwiseXor, Laws, Located, LogicalAnd, LogicalOr, LogicalXor, Max,
    MaxLoc, Min, MinLoc, Operation, PartialSum, PreMultipliedSum, Product, ReproducibleAverage,
    ReproducibleSum, Sum, WideAverage, WideSum,
};
pub use gradwire_schema::{
    Arithmetic, ConvertTo, Datatype, Element, Equivalence, F8E4m3, F8E5m2, Float, Gradient, Integer,
    InvalidValue, OperationId, Properties, Reduction, gradient, layout, operation,
};
pub use in_process::{run, run_over};
pub use init::{init, init_over, init_over_transport, init_with};
pub use plan::Determinism;
pub use rank::Rank;
pub use reduce_local::reduce_local;
pub use request::{Persistent, Request, Scope, ScopedRequest, wait_all, wait_any, wait_some};
pub use secret::JobSecret;
pub use window::Window;

/// What derived code names. Not for people.
#[doc(hidden)]
pub mod __private {
    pub use gradwire_schema as schema;
}
