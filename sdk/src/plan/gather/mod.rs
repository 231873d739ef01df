//! The root gets everybody's block.

mod direct;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] = &[&direct::Direct];
