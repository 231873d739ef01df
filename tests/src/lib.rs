//! The test harness of Gradwire, as a library: what several test binaries share.

pub mod clock;
pub mod conformance;
pub mod ranks;
