//! Writes the implementation.

mod gradient;

pub(crate) use gradient::gradient;
