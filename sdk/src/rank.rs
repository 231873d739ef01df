//! The number of a process inside a communicator.

/// The number of a process inside a communicator: `0..size`.
pub type Rank = usize;
