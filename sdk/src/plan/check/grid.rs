//! All algorithms over all sizes that matter.

use super::check;
use crate::plan::alone::Alone;
use crate::plan::{Algorithm, Collective, Determinism, Shape, algorithms};

/// All counts for few ranks; for many, those around every edge. Blocks of a given length have few edges.
fn counts(collective: Collective, ranks: usize) -> Vec<usize> {
    let given = matches!(collective, Collective::AllGather | Collective::Gather | Collective::ReduceScatter);
    match ranks {
        ..=3 => (0..=70).collect(),
        ..=6 if !given => (0..=70).collect(),
        _ if given => vec![0, 1, 2, 5],
        _ => vec![0, 1, ranks - 1, ranks, 2 * ranks - 1, 70],
    }
}

/// The shapes of a collective with these ranks and elements: each root that matters, and each kind of operation.
pub(super) fn shapes(collective: Collective, ranks: usize, count: usize) -> Vec<Shape> {
    let sum = Shape {
        collective,
        ranks,
        count,
        element_size: 4,
        root: 0,
        commutative: true,
        exact_partials: true,
        determinism: Determinism::Ranks,
    };
    let mut shapes = vec![sum.clone()];
    if collective.reduces() {
        shapes.push(Shape { commutative: false, ..sum.clone() });
        shapes.push(Shape { exact_partials: false, determinism: Determinism::Algorithms, ..sum });
    }
    if matches!(collective, Collective::Broadcast | Collective::Reduce | Collective::Gather) {
        let mut roots = vec![0, ranks / 2, ranks - 1];
        roots.dedup();
        let rooted =
            |shape: &Shape| roots.iter().map(|&root| Shape { root, ..shape.clone() }).collect::<Vec<_>>();
        shapes = shapes.iter().flat_map(rooted).collect();
    }
    shapes
}

/// Runs the proof for every algorithm that says it serves the shape, and returns how many there were.
fn prove_shape(shape: &Shape) -> usize {
    let algorithms =
        if shape.ranks == 1 { &[&Alone as &dyn Algorithm] } else { algorithms(shape.collective) };
    let serving = algorithms.iter().filter(|algorithm| algorithm.excluded(shape).is_none());
    serving
        .map(|algorithm| match check(*algorithm, shape) {
            Ok(()) => 1,
            Err(mistake) => panic!("{}, {shape:?}: {mistake}", algorithm.name()),
        })
        .sum()
}

fn prove(collective: Collective) {
    for ranks in 1..=33 {
        for count in counts(collective, ranks) {
            for shape in shapes(collective, ranks, count) {
                assert!(prove_shape(&shape) > 0, "nothing serves {shape:?}");
            }
        }
    }
}

#[test]
fn all_reduce() {
    prove(Collective::AllReduce);
}

#[test]
fn broadcast() {
    prove(Collective::Broadcast);
}

#[test]
fn all_gather() {
    prove(Collective::AllGather);
}

#[test]
fn reduce_scatter() {
    prove(Collective::ReduceScatter);
}

#[test]
fn reduce() {
    prove(Collective::Reduce);
}

#[test]
fn gather() {
    prove(Collective::Gather);
}

#[test]
fn blocks_cut_at_cache_lines() {
    for ranks in [2, 3, 5] {
        for shape in shapes(Collective::AllReduce, ranks, 16 * 16 * ranks + 5) {
            assert_eq!(shape.block(0).end % 16, 0);
            prove_shape(&shape);
        }
    }
}
