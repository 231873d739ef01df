//! The root gets the sum of everybody's vector.

mod binomial;
mod chain;
mod root_computes;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] =
    &[&root_computes::RootComputes, &binomial::Binomial, &chain::Chain];
