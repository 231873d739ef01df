//! Every rank gets its block of the root's vector.

mod binomial;
mod direct;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] = &[&direct::Direct, &binomial::Binomial];
