//! Everybody gets everybody's block.

mod direct;
mod ring;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] = &[&direct::Direct, &ring::Ring];
