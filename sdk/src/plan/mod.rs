//! Plans: what each rank sends, receives and folds in a collective, as data.
//!
//! An [`Algorithm`] computes any step of any rank from the [`Shape`] alone: no socket, no clock, no state, and no list
//! of steps in memory. An executor carries the steps out and owns everything an algorithm need not know: segments,
//! credits, retries, timeouts. `check` proves the algorithms over all sizes that matter.
//!
//! Not planned here: barriers and messages so small that they travel with the signatures; hierarchies (several ranks
//! per host); groups that share memory wholly, which the `direct` executor serves without plans.
#![forbid(unsafe_code)]

mod all_gather;
mod all_reduce;
mod all_to_all;
mod alone;
mod association;
mod blocks;
mod broadcast;
#[cfg(test)]
mod check;
mod cost;
mod gather;
mod reduce;
mod reduce_scatter;
mod ring;
mod scan;
mod scatter;
mod shape;
mod step;

pub(crate) use association::Association;
pub(crate) use blocks::Blocks;
pub(crate) use cost::{Cost, Links};
pub use shape::Determinism;
pub(crate) use shape::{Collective, Shape};
pub(crate) use step::{Action, Peers, Step};

use crate::Rank;
use std::fmt;
use std::ops::Range;

/// A way to carry out a collective. All methods are pure functions of their arguments.
pub(crate) trait Algorithm: fmt::Debug + Send + Sync {
    /// As in `GRADWIRE_TUNE` and in explanations.
    fn name(&self) -> &'static str;
    /// Why the algorithm cannot serve the shape; `None`: it can. Of a shape of the collective it is listed for.
    fn excluded(&self, shape: &Shape) -> Option<&'static str>;
    /// What it costs a rank, of a shape it can serve.
    fn cost(&self, shape: &Shape) -> Cost;
    /// In which order the contributions to an element are combined.
    fn association(&self) -> Association;
    /// How many steps a rank has.
    fn len(&self, shape: &Shape, rank: Rank) -> usize;
    /// Step `index` of a rank, below `len`.
    fn step(&self, shape: &Shape, rank: Rank, index: usize) -> Step;
}

/// The algorithms for a collective. The first serves every shape of at least two ranks; of equally cheap ones
/// the earlier is taken.
pub(crate) const fn algorithms(collective: Collective) -> &'static [&'static dyn Algorithm] {
    match collective {
        Collective::AllReduce => all_reduce::ALGORITHMS,
        Collective::Broadcast => broadcast::ALGORITHMS,
        Collective::AllGather => all_gather::ALGORITHMS,
        Collective::ReduceScatter => reduce_scatter::ALGORITHMS,
        Collective::Reduce => reduce::ALGORITHMS,
        Collective::Gather => gather::ALGORITHMS,
        Collective::Scatter => scatter::ALGORITHMS,
        Collective::AllToAll => all_to_all::ALGORITHMS,
        Collective::Scan | Collective::ExclusiveScan => scan::ALGORITHMS,
    }
}

/// The steps of one rank in a collective, computed on demand.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    algorithm: &'static dyn Algorithm,
    shape: Shape,
    rank: Rank,
}

impl Plan {
    /// The plan of `rank` for an algorithm that does not exclude the shape. A single rank needs no algorithm, and none
    /// is asked.
    pub(crate) fn new(algorithm: &'static dyn Algorithm, shape: Shape, rank: Rank) -> Self {
        let algorithm = if shape.ranks == 1 { &alone::Alone } else { algorithm };
        Self { algorithm, shape, rank }
    }

    pub(crate) fn algorithm(&self) -> &'static dyn Algorithm {
        self.algorithm
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn rank(&self) -> Rank {
        self.rank
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> usize {
        self.algorithm.len(&self.shape, self.rank)
    }

    /// The step with this index, below [`len`](Self::len).
    pub(crate) fn step(&self, index: usize) -> Step {
        self.algorithm.step(&self.shape, self.rank, index)
    }

    /// All steps.
    pub(crate) fn steps(&self) -> impl ExactSizeIterator<Item = Step> {
        (0..self.len()).map(|index| self.step(index))
    }

    /// What this rank must hold at the start.
    pub(crate) fn input(&self) -> Range<usize> {
        self.shape.input(self.rank)
    }

    /// What this rank holds at the end.
    pub(crate) fn result(&self) -> Range<usize> {
        self.shape.result(self.rank)
    }

    /// Whether nothing outside of the result is written. Otherwise partial results pass through the rest of the
    /// working vector, and a source that must survive has to be copied first.
    pub(crate) fn preserves_input(&self) -> bool {
        let result = self.result();
        self.steps().all(|step| {
            !step.writes()
                || step.range.is_empty()
                || (result.start <= step.range.start && step.range.end <= result.end)
        })
    }
}
