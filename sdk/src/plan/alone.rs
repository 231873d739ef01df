//! One rank: there is nobody to talk to.

use super::{Algorithm, Association, Cost, Shape, Step};
use crate::Rank;

/// Finishes the own contribution where something is reduced, and does nothing otherwise.
///
/// Restrictions: one rank. Association: one contribution. Cost: none.
#[derive(Debug)]
pub(super) struct Alone;

impl Algorithm for Alone {
    fn name(&self) -> &'static str {
        "alone"
    }

    fn excluded(&self, shape: &Shape) -> Option<&'static str> {
        (shape.ranks != 1).then_some("there is more than one rank")
    }

    fn cost(&self, _: &Shape) -> Cost {
        Cost::default()
    }

    fn association(&self) -> Association {
        Association::RankOrder
    }

    fn len(&self, shape: &Shape, _: Rank) -> usize {
        usize::from(shape.collective.reduces())
    }

    fn step(&self, shape: &Shape, _: Rank, _: usize) -> Step {
        Step::finish(shape.whole())
    }
}
