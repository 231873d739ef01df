//! The launcher.
fn main() {}
