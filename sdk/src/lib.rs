//! Sums gradients between processes.
