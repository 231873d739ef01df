//! The formats that `#[gradient(wire = ...)]` names.

pub use half::{bf16, f16};
pub use std::primitive::{f32, f64};
