//! Sums gradients between processes.

mod error;
mod rank;

pub use error::{Call, Error, Result};
pub use rank::Rank;
