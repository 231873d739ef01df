//! What ends up where.

use super::matching::{Receivers, peers};
use super::{Action, Shape, Step};
use crate::plan::{Association, Collective, Determinism};
use std::collections::HashMap;

/// A symbolic value: an index into [`Terms`].
type Value = u32;

/// What a value stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Term {
    /// Memory that was never written.
    Nothing,
    /// The contribution of a rank, to the element where it stands.
    Contribution(usize),
    /// Two values combined.
    Pair(Value, Value),
    /// A result.
    Finished(Value),
}

/// All values so far. Equal terms are equal values.
struct Terms {
    commutative: bool,
    values: HashMap<Term, Value>,
}

impl Terms {
    fn value(&mut self, term: Term) -> Value {
        let next = Value::try_from(self.values.len()).expect("few values");
        *self.values.entry(term).or_insert(next)
    }

    fn pair(&mut self, left: Value, right: Value) -> Value {
        let swap = self.commutative && right < left;
        self.value(if swap { Term::Pair(right, left) } else { Term::Pair(left, right) })
    }

    /// From the left.
    fn fold(&mut self, values: impl IntoIterator<Item = Value>) -> Option<Value> {
        values.into_iter().reduce(|left, right| self.pair(left, right))
    }

    /// Neighbours in rounds, until one is left.
    fn tree(&mut self, mut values: Vec<Value>) -> Option<Value> {
        while values.len() > 1 {
            values = values.chunks(2).filter_map(|pair| self.fold(pair.iter().copied())).collect();
        }
        values.first().copied()
    }
}

/// Carries out all steps, a send only when its receiver is ready, and compares all results with what they should be.
pub(super) fn check(
    association: Association,
    shape: &Shape,
    plans: &[Vec<Step>],
    receivers: &Receivers,
) -> Result<(), String> {
    let mut terms = Terms { commutative: shape.commutative, values: HashMap::new() };
    let vectors = run(shape, plans, receivers, &mut terms)?;
    let expected: Vec<Value> =
        (0..shape.len()).map(|element| expected(association, shape, element, &mut terms)).collect();
    for (rank, vector) in vectors.iter().enumerate() {
        let input = shape.input(rank);
        for element in shape.result(rank) {
            let kept = input.contains(&element) && !shape.collective.reduces();
            if vector[element] != expected[element] {
                return Err(format!(
                    "rank {rank}, element {element}: {}, not {}{}",
                    describe(&terms, vector[element]),
                    describe(&terms, expected[element]),
                    if kept { ", which it had" } else { "" },
                ));
            }
        }
    }
    Ok(())
}

fn run(
    shape: &Shape,
    plans: &[Vec<Step>],
    receivers: &Receivers,
    terms: &mut Terms,
) -> Result<Vec<Vec<Value>>, String> {
    let nothing = terms.value(Term::Nothing);
    let mut vectors = Vec::new();
    for rank in 0..shape.ranks {
        let mut vector = vec![nothing; shape.len()];
        vector[shape.input(rank)].fill(terms.value(Term::Contribution(rank)));
        vectors.push(vector);
    }
    let mut done: Vec<Vec<bool>> = plans.iter().map(|steps| vec![false; steps.len()]).collect();
    let mut mail: HashMap<(usize, usize, u32), Vec<Value>> = HashMap::new();
    let may_begin = |done: &[Vec<bool>], rank: usize, index: usize| {
        plans[rank][index].after.iter().flatten().all(|&other| done[rank][other as usize])
    };
    loop {
        let mut progress = false;
        for (rank, steps) in plans.iter().enumerate() {
            for (index, step) in steps.iter().enumerate() {
                if done[rank][index] || !may_begin(&done, rank, index) {
                    continue;
                }
                let range = step.range.clone();
                if let Action::Send { to } = step.action {
                    let receiver = receivers[&(rank, index)];
                    let overwrites = matches!(plans[to][receiver].action, Action::Receive { .. });
                    if overwrites && !may_begin(&done, to, receiver) {
                        continue;
                    }
                    if vectors[rank][range.clone()].contains(&nothing) {
                        return Err(format!(
                            "rank {rank}, step {index} sends what it does not have: {step:?}"
                        ));
                    }
                    mail.insert((rank, to, step.channel), vectors[rank][range].to_vec());
                } else {
                    let senders = peers(step, rank, shape.ranks);
                    let letter = |from: usize| (from, rank, step.channel);
                    if !senders.iter().all(|&from| mail.contains_key(&letter(from))) {
                        continue;
                    }
                    let mut operands: Vec<(usize, Vec<Value>)> = senders
                        .iter()
                        .filter_map(|&from| Some((from, mail.remove(&letter(from))?)))
                        .collect();
                    write(step.action, rank, &mut operands, &mut vectors[rank][range], terms);
                    if matches!(step.action, Action::ReceiveReduce { last: false, .. })
                        && !shape.exact_partials
                    {
                        return Err(format!("rank {rank}, step {index} writes a partial result: {step:?}"));
                    }
                }
                done[rank][index] = true;
                progress = true;
            }
        }
        if !progress {
            break;
        }
    }
    for (rank, done) in done.iter().enumerate() {
        if let Some(index) = done.iter().position(|done| !done) {
            return Err(format!("stuck: rank {rank}, step {index}: {:?}", plans[rank][index]));
        }
    }
    Ok(vectors)
}

/// What a step that is not a send does to its range.
fn write(
    action: Action,
    rank: usize,
    received: &mut Vec<(usize, Vec<Value>)>,
    own: &mut [Value],
    terms: &mut Terms,
) {
    let last = match action {
        Action::ReceiveReduce { last, .. } => {
            received.push((rank, own.to_vec()));
            received.sort();
            last
        }
        Action::Finish => {
            received.push((rank, own.to_vec()));
            true
        }
        Action::Receive { .. } | Action::Send { .. } => false,
    };
    for (index, value) in own.iter_mut().enumerate() {
        if let Some(folded) = terms.fold(received.iter().map(|(_, values)| values[index])) {
            *value = if last { terms.value(Term::Finished(folded)) } else { folded };
        }
    }
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

/// `[(0 1) 2]`: finished, of a pair and a contribution.
fn describe(terms: &Terms, value: Value) -> String {
    let term = terms.values.iter().find(|&(_, &other)| other == value).map(|(&term, _)| term);
    match term {
        Some(Term::Contribution(rank)) => rank.to_string(),
        Some(Term::Pair(left, right)) => format!("({} {})", describe(terms, left), describe(terms, right)),
        Some(Term::Finished(value)) => format!("[{}]", describe(terms, value)),
        Some(Term::Nothing) | None => "nothing".to_owned(),
    }
}
