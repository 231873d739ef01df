//! Everybody gets the root's vector.

mod binomial;
mod chain;
mod scatter_ring;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] =
    &[&binomial::Binomial, &scatter_ring::ScatterRing, &chain::Chain];
