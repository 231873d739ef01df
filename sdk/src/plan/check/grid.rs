//! All algorithms over all sizes that matter.

use super::check;
use crate::plan::alone::Alone;
use crate::plan::{Algorithm, Blocks, Collective, Determinism, Shape, algorithms};
use proptest::prelude::*;

/// All counts for few ranks; for many, those around every edge. Blocks of a given length have few edges.
fn counts(collective: Collective, ranks: usize) -> Vec<usize> {
    let given = collective.has_blocks();
    match ranks {
        17.. if collective == Collective::AllToAll => vec![0, 1],
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
        blocks: None,
        element_size: 4,
        root: 0,
        commutative: true,
        exact_partials: true,
        determinism: Determinism::Ranks,
    };
    let mut shapes = vec![sum.clone()];
    if collective.reduces() {
        shapes.push(Shape { commutative: false, ..sum.clone() });
        shapes.push(Shape { determinism: Determinism::Algorithms, ..sum.clone() });
        shapes.push(Shape { exact_partials: false, determinism: Determinism::Contributions, ..sum });
    }
    if matches!(
        collective,
        Collective::Broadcast | Collective::Reduce | Collective::Gather | Collective::Scatter
    ) {
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
fn scatter() {
    prove(Collective::Scatter);
}

#[test]
fn all_to_all() {
    prove(Collective::AllToAll);
}

#[test]
fn scan() {
    prove(Collective::Scan);
}

#[test]
fn exclusive_scan() {
    prove(Collective::ExclusiveScan);
}

/// The shapes of a collective whose ranks have blocks of these lengths.
pub(super) fn uneven(collective: Collective, ranks: usize, counts: &[usize]) -> Vec<Shape> {
    let blocks = match collective {
        Collective::AllToAll => Blocks::exchange(ranks, counts),
        _ => Blocks::new(&counts[..ranks]),
    };
    let shapes = shapes(collective, ranks, 0).into_iter();
    shapes.map(|shape| Shape { blocks: blocks.clone(), ..shape }).collect()
}

/// How many lengths a collective needs.
fn lengths(collective: Collective, ranks: usize) -> usize {
    if collective == Collective::AllToAll { ranks * ranks } else { ranks }
}

#[test]
fn blocks_of_any_lengths() {
    for collective in Collective::ALL.into_iter().filter(|collective| collective.has_blocks()) {
        for ranks in 1..=33 {
            let lengths = lengths(collective, ranks);
            let one_has_all = |owner: usize| (0..lengths).map(|at| if at == owner { 5 } else { 0 }).collect();
            let mut edges: Vec<Vec<usize>> = vec![vec![0; lengths], (0..lengths).map(|at| at % 3).collect()];
            edges.extend([0, lengths / 2, lengths - 1].map(one_has_all));
            for counts in &edges {
                for shape in uneven(collective, ranks, counts) {
                    assert!(prove_shape(&shape) > 0, "nothing serves {shape:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn blocks_of_random_lengths(
        ranks in 1_usize..=33,
        counts in proptest::collection::vec(prop_oneof![Just(0), 0_usize..5], 33 * 33),
    ) {
        for collective in Collective::ALL.into_iter().filter(|collective| collective.has_blocks()) {
            for shape in uneven(collective, ranks, &counts[..lengths(collective, ranks)]) {
                prop_assert!(prove_shape(&shape) > 0, "nothing serves {shape:?}");
            }
        }
    }
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
