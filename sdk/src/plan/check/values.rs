//! What ends up where.

use super::matching::Receivers;
use super::run::run;
use super::terms::{Term, Terms, Value};
use super::{Shape, Step};
use crate::plan::{Association, Collective, Determinism};

/// Carries out all steps and compares all results with what they should be.
pub(super) fn check(
    association: Association,
    shape: &Shape,
    plans: &[Vec<Step>],
    receivers: &Receivers,
) -> Result<(), String> {
    let mut terms = Terms::new(shape.commutative);
    let vectors = run(shape, plans, receivers, &mut terms)?;
    let expected: Vec<Value> =
        (0..shape.len()).map(|element| expected(association, shape, element, &mut terms)).collect();
    for (rank, vector) in vectors.iter().enumerate() {
        for element in shape.result(rank) {
            if vector[element] != expected[element] {
                let (is, should) = (terms.describe(vector[element]), terms.describe(expected[element]));
                return Err(format!("rank {rank}, element {element}: {is}, not {should}"));
            }
        }
    }
    Ok(())
}

/// What an element of a result must be.
fn expected(association: Association, shape: &Shape, element: usize, terms: &mut Terms) -> Value {
    let ranks = shape.ranks;
    let owner = || match shape.collective {
        Collective::Reduce | Collective::Broadcast => shape.root,
        _ => (0..ranks).find(|&rank| shape.block(rank).contains(&element)).expect("blocks cover the vector"),
    };
    if !shape.collective.reduces() {
        return terms.value(Term::Contribution(owner()));
    }
    let contributions: Vec<Value> = (0..ranks).map(|rank| terms.value(Term::Contribution(rank))).collect();
    let rotated = |first: usize| [&contributions[first..], &contributions[..first]].concat();
    let folded = match association {
        Association::Nothing => None,
        Association::RankOrder => terms.fold(contributions),
        // Two operands are always folded in rank order.
        _ if ranks <= 2 || shape.determinism >= Determinism::Algorithms => terms.fold(contributions),
        Association::Rotated => terms.fold(rotated((owner() + 1) % ranks)),
        Association::Binomial => terms.tree(rotated(shape.root)),
        Association::Butterfly => {
            let extra = ranks - (1 << ranks.ilog2());
            let (paired, single) = contributions.split_at(2 * extra);
            let mut places: Vec<Value> = paired.chunks(2).map(|pair| terms.pair(pair[0], pair[1])).collect();
            places.extend(single);
            terms.tree(places)
        }
    };
    let folded = folded.expect("an algorithm that reduces declares how");
    terms.value(Term::Finished(folded))
}
