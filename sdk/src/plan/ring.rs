//! The two halves of the ring algorithms, each on the blocks of any shape.
//!
//! Rank `r` sends to `r + 1` and receives from `r - 1`, all at the same time, `p - 1` times. Reducing, block `b` starts
//! at `b + 1` and collects a contribution at every stop until it reaches its owner `b`; gathering, it travels on from
//! there to everybody.
//!
//! ```text
//!           reduce_scatter, p = 3          all_gather
//! rank 0    2 ->   1 ->  (0 whole)         0 ->   2 ->
//! rank 1    0 ->   2 ->  (1 whole)         1 ->   0 ->
//! rank 2    1 ->   0 ->  (2 whole)         2 ->   1 ->
//! ```

use super::{Shape, Step};
use crate::Rank;
use crate::pattern::ring::{backward, forward};

/// Steps of one half.
pub(super) const fn len(shape: &Shape) -> usize {
    2 * (shape.ranks - 1)
}

/// Step `index` of the reducing half; it starts at step 0 of the plan. Channels: `0..ranks - 1`.
pub(super) fn reduce_scatter(shape: &Shape, rank: Rank, index: usize) -> Step {
    let ranks = shape.ranks;
    let round = index / 2;
    if index.is_multiple_of(2) {
        let block = shape.block(backward(ranks, rank, round + 1));
        // The block folded in the round before.
        Step::send(forward(ranks, rank, 1), block).channel(round).after_any(index.checked_sub(1))
    } else {
        let block = shape.block(backward(ranks, rank, round + 2));
        Step::fold(backward(ranks, rank, 1), round == ranks - 2, block).channel(round)
    }
}

/// Step `index` of the gathering half after [`reduce_scatter`].
pub(super) fn all_gather_after_reduce_scatter(shape: &Shape, rank: Rank, index: usize) -> Step {
    let start = len(shape);
    let round = index / 2;
    let step = shift(all_gather(shape, rank, index), start).channel(shape.ranks - 1 + round);
    if index == 0 {
        step.after(start - 1) // the fold of the own block
    } else if index.is_multiple_of(2) {
        step
    } else {
        step.after(2 * round) // the block that is overwritten was sent away in this round of the reducing half
    }
}

/// Step `index` of the gathering half alone.
pub(super) fn all_gather(shape: &Shape, rank: Rank, index: usize) -> Step {
    let ranks = shape.ranks;
    let round = index / 2;
    if index.is_multiple_of(2) {
        let block = shape.block(backward(ranks, rank, round));
        // The block received in the round before.
        Step::send(forward(ranks, rank, 1), block).channel(round).after_any(index.checked_sub(1))
    } else {
        let block = shape.block(backward(ranks, rank, round + 1));
        Step::receive(backward(ranks, rank, 1), block).channel(round)
    }
}

/// The step `by` places later in a plan.
fn shift(step: Step, by: usize) -> Step {
    let after = step.after;
    after
        .into_iter()
        .flatten()
        .fold(Step { after: [None, None], ..step }, |step, index| step.after(index as usize + by))
}
