//! A network that learns to read handwritten digits, trained on several ranks.
//!
//! Each step every rank computes the [`gradients`](Gradients) of its part of a batch, and one call sums them:
//! [`training`] is where to start reading.

pub mod check;
pub mod data;
pub mod matrix;
pub mod network;
pub mod report;
pub mod training;

pub use check::{Account, Verdict};
pub use data::{DataError, Images};
pub use network::{Gradients, Network};
pub use training::{Settings, Trained, train};
