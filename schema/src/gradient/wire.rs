//! The formats that `#[gradient(wire = ...)]` names.

pub use crate::{F8E4m3, F8E5m2};
pub use half::{bf16, f16};
pub use std::primitive::{f32, f64};
