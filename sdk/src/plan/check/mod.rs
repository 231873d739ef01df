//! Proves plans: runs all ranks of a call on symbols instead of numbers.
//!
//! For a shape, [`check`] shows that
//!
//! - steps name ranks, ranges and steps that exist;
//! - all conflicting accesses of a rank to its working vector are ordered by `after` ([`order`]);
//! - every send has exactly one receiver, which names the same channel and range ([`matching`]);
//! - all steps can be carried out even if each rank opens one receiving step after the other, and a send must wait
//!   until its receiver is open ([`run`]): more memory only lets more steps run, so that no executor gets stuck;
//! - every element of every result is the declared association of exactly one contribution of each rank (in a scan, of
//!   each up to the own), the same on all ranks, and finished; of one fold, and of rank order, where the shape demands it;
//! - in all_to_all, where ranks have index spaces of their own, every element is the one that was meant for its place;
//! - rank 0 of an exclusive scan writes nothing.
//!
//! The first two make the outcome independent of the order in which an executor takes the steps: it is enough to run
//! one order.

mod faults;
mod grid;
mod matching;
mod order;
mod run;
mod terms;
mod values;

use super::{Action, Algorithm, Shape, Step};

/// What is wrong with the plans that an algorithm makes for a shape.
fn check(algorithm: &dyn Algorithm, shape: &Shape) -> Result<(), String> {
    let plans: Vec<Vec<Step>> = (0..shape.ranks)
        .map(|rank| (0..algorithm.len(shape, rank)).map(|index| algorithm.step(shape, rank, index)).collect())
        .collect();
    for (rank, steps) in plans.iter().enumerate() {
        well_formed(shape, rank, steps)
            .and_then(|()| order::check(steps))
            .map_err(|mistake| format!("rank {rank}: {mistake}"))?;
    }
    let receivers = matching::check(shape, &plans)?;
    values::check(algorithm.association(), shape, &plans, &receivers)
}

fn well_formed(shape: &Shape, rank: usize, steps: &[Step]) -> Result<(), String> {
    for (index, step) in steps.iter().enumerate() {
        let peers = matching::peers(step, rank, shape.ranks);
        let peer_exists = peers.iter().all(|&peer| peer < shape.ranks && peer != rank);
        let len = shape.len_of(rank);
        let range_exists = step.range.start <= step.range.end && step.range.end <= len;
        let source_exists = match step.action {
            Action::Copy { from } => from + step.range.len() <= len,
            _ => true,
        };
        let waits_backwards = step.after.iter().flatten().all(|&other| (other as usize) < index);
        if !(peer_exists && range_exists && source_exists && waits_backwards) {
            return Err(format!("step {index} is malformed: {step:?}"));
        }
    }
    Ok(())
}
