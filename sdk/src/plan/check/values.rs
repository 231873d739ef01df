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
    let mut all = Vec::new();
    for (rank, vector) in vectors.iter().enumerate() {
        let checked = match shape.collective {
            // The same for all elements, but not on all ranks.
            Collective::Scan | Collective::ExclusiveScan => {
                all = vec![scanned(association, shape, rank, &mut terms); vector.len()];
                shape.whole()
            }
            Collective::AllToAll => {
                all = (0..vector.len()).map(|element| exchanged(shape, rank, element, &mut terms)).collect();
                0..vector.len()
            }
            _ => {
                if rank == 0 {
                    let expected = |element| expected(association, shape, element, &mut terms);
                    all = (0..vector.len()).map(expected).collect();
                }
                shape.result(rank)
            }
        };
        for element in checked {
            if vector[element] != all[element] {
                let (is, should) = (terms.describe(vector[element]), terms.describe(all[element]));
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
        Collective::Reduce | Collective::Broadcast | Collective::Scatter => shape.root,
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
        Association::Doubling => None,
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

/// What a rank must have after a scan. Rank 0 of an exclusive one has what it had.
fn scanned(association: Association, shape: &Shape, rank: usize, terms: &mut Terms) -> Value {
    let contributions = match shape.collective {
        Collective::ExclusiveScan if rank == 0 => return terms.value(Term::Contribution(0)),
        Collective::ExclusiveScan => rank,
        _ => rank + 1,
    };
    let all: Vec<Value> = (0..contributions).map(|rank| terms.value(Term::Contribution(rank))).collect();
    let folded = match association {
        Association::Doubling if shape.ranks > 2 => {
            let mut sums = all;
            let mut distance = 1;
            while distance < contributions {
                let before = sums.clone();
                for place in distance..contributions {
                    sums[place] = terms.pair(before[place - distance], before[place]);
                }
                distance *= 2;
            }
            sums.last().copied()
        }
        Association::Doubling | Association::RankOrder => terms.fold(all),
        _ => None,
    };
    let folded = folded.expect("an algorithm that scans declares how");
    terms.value(Term::Finished(folded))
}

/// What must be where after an exchange: a rank's own blocks as they were, and behind them those meant for it.
fn exchanged(shape: &Shape, rank: usize, element: usize, terms: &mut Terms) -> Value {
    let source = (0..shape.ranks).find_map(|from| {
        let place = shape.incoming(rank, from);
        place.contains(&element).then(|| (from, shape.outgoing(from, rank).start + element - place.start))
    });
    let (from, element) = source.unwrap_or((rank, element));
    terms.value(Term::Element(from, element))
}
