//! The conformance suite, mounted on every backend.

mod sim;
mod tcp;
