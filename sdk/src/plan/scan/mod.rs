//! Every rank gets the sum of the vectors of the ranks up to it: its own included, or not (exclusive).
//!
//! In an exclusive scan every rank first passes its vector to its successor. The ranks from 1 on then hold what the
//! ranks from 0 on contribute, and carry out a scan that includes it. Rank 0 is left as it is.

mod chain;
mod direct;
mod doubling;

use super::{Algorithm, Collective, Cost, Shape, Step};
use crate::Rank;

pub(super) const ALGORITHMS: &[&dyn Algorithm] = &[&direct::Direct, &doubling::Doubling, &chain::Chain];

/// A rank's place in the line of those that carry out the inclusive scan.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// How many stand in line.
    places: usize,
    place: usize,
}

/// How many ranks stand in line.
fn places(shape: &Shape) -> usize {
    shape.ranks - usize::from(shape.collective == Collective::ExclusiveScan)
}

/// How many steps a rank has, of which `inclusive` counts those of a place in line.
fn len(shape: &Shape, rank: Rank, inclusive: impl FnOnce(Line) -> usize) -> usize {
    match line(shape, rank) {
        Some(line) => passing(shape, rank) + inclusive(line),
        None => passing(shape, rank),
    }
}

/// Step `index` of a rank, where `inclusive` makes those of a place in line.
fn step(shape: &Shape, rank: Rank, index: usize, inclusive: impl FnOnce(Line, usize) -> Step) -> Step {
    let passing = passing(shape, rank);
    match line(shape, rank) {
        Some(line) if index >= passing => {
            let ahead = shape.ranks - line.places;
            inclusive(line, index - passing).behind(ahead, passing, ahead)
        }
        _ if index == 0 && rank + 1 < shape.ranks => Step::send(rank + 1, shape.whole()),
        _ => Step::receive(rank - 1, shape.whole()).after_any(index.checked_sub(1)),
    }
}

fn line(shape: &Shape, rank: Rank) -> Option<Line> {
    let places = places(shape);
    Some(Line { places, place: rank.checked_sub(shape.ranks - places)? })
}

/// How many steps it takes a rank to pass its vector on and to get another.
fn passing(shape: &Shape, rank: Rank) -> usize {
    match shape.collective {
        Collective::ExclusiveScan => usize::from(rank > 0) + usize::from(rank + 1 < shape.ranks),
        _ => 0,
    }
}

/// The costs with those of passing vectors on.
fn passed(shape: &Shape, cost: Cost) -> Cost {
    if shape.collective != Collective::ExclusiveScan {
        return cost;
    }
    Cost {
        rounds: cost.rounds + 1.0,
        messages: cost.messages + 1.0,
        bytes: cost.bytes + shape.bytes() as f64,
        ..cost
    }
}
