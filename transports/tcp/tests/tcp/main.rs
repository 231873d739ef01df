//! The transport against itself, against strangers and against the clock.

mod descriptors;
mod detours;
mod exchange;
mod hosts;
mod liveness;
mod meeting;
mod revocation;
mod strangers;
mod support;
