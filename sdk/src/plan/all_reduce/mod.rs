//! Everybody gets the sum of everybody's vector.

mod owner_computes;
mod rabenseifner;
mod recursive_doubling;
mod ring;

use super::Algorithm;

pub(super) const ALGORITHMS: &[&dyn Algorithm] = &[
    &owner_computes::OwnerComputes,
    &recursive_doubling::RecursiveDoubling,
    &rabenseifner::Rabenseifner,
    &ring::Ring,
];
