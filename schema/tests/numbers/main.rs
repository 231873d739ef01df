//! What numbers and operations mean, seen from outside.

mod conversions;
mod operations;
mod reproducible;
