//! One rank: there is nobody to talk to.

use super::{Algorithm, Association, Collective, Cost, Shape, Step};
use crate::Rank;

/// Finishes the own contribution where something is reduced, copies what goes from here to here, and does nothing
/// otherwise.
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
        let moves = match shape.collective {
            Collective::ExclusiveScan => false,
            Collective::AllToAll => true,
            collective => collective.reduces(),
        };
        usize::from(moves)
    }

    fn step(&self, shape: &Shape, rank: Rank, _: usize) -> Step {
        match shape.collective {
            Collective::AllToAll => Step::copy(shape.outgoing(rank, rank).start, shape.incoming(rank, rank)),
            _ => Step::finish(shape.whole()),
        }
    }
}
