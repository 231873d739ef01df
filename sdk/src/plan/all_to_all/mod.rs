//! Everybody gets from everybody the block that is meant for it.

mod direct;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] = &[&direct::Direct];
