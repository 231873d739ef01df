//! Symbols instead of numbers.

use std::collections::HashMap;

/// A symbolic value: an index into [`Terms`].
pub(super) type Value = u32;

/// What a value stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Term {
    /// Memory that was never written.
    Nothing,
    /// The contribution of a rank, to the element where it stands.
    Contribution(usize),
    /// An element of a rank's own index space.
    Element(usize, usize),
    /// Two values combined.
    Pair(Value, Value),
    /// A result.
    Finished(Value),
}

/// All values so far. Equal terms are equal values.
pub(super) struct Terms {
    /// The order of a pair does not matter.
    commutative: bool,
    values: HashMap<Term, Value>,
}

impl Terms {
    pub(super) fn new(commutative: bool) -> Self {
        Self { commutative, values: HashMap::new() }
    }

    pub(super) fn value(&mut self, term: Term) -> Value {
        let next = Value::try_from(self.values.len()).expect("few values");
        *self.values.entry(term).or_insert(next)
    }

    pub(super) fn pair(&mut self, left: Value, right: Value) -> Value {
        let swap = self.commutative && right < left;
        self.value(if swap { Term::Pair(right, left) } else { Term::Pair(left, right) })
    }

    /// From the left.
    pub(super) fn fold(&mut self, values: impl IntoIterator<Item = Value>) -> Option<Value> {
        values.into_iter().reduce(|left, right| self.pair(left, right))
    }

    /// Neighbours in rounds, until one is left.
    pub(super) fn tree(&mut self, mut values: Vec<Value>) -> Option<Value> {
        while values.len() > 1 {
            values = values.chunks(2).filter_map(|pair| self.fold(pair.iter().copied())).collect();
        }
        values.first().copied()
    }

    /// `[(0 1) 2]`: finished, of a pair and a contribution.
    pub(super) fn describe(&self, value: Value) -> String {
        let term = self.values.iter().find(|&(_, &other)| other == value).map(|(&term, _)| term);
        match term {
            Some(Term::Contribution(rank)) => rank.to_string(),
            Some(Term::Element(rank, element)) => format!("{rank}.{element}"),
            Some(Term::Pair(left, right)) => format!("({} {})", self.describe(left), self.describe(right)),
            Some(Term::Finished(value)) => format!("[{}]", self.describe(value)),
            Some(Term::Nothing) | None => "nothing".to_owned(),
        }
    }
}
