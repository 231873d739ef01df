//! `GRADWIRE_TUNE`: which algorithm for which sizes.
//!
//! ```text
//! all_reduce:0-64k=recursive_doubling,64k-=ring;broadcast:1m-=chain
//! ```
//!
//! Sizes are bytes of the working vector (for all_gather, gather, scatter and reduce_scatter that of all blocks together;
//! for all_to_all what a rank sends and receives, of the rank that has most), from the first up to but not including
//! the second. Nothing behind the dash: no upper end. `k`, `m` and `g` are 2^10, 2^20 and 2^30. What no range names
//! is chosen by cost.

use crate::plan::{Algorithm, Collective, Shape, algorithms};
use std::fmt;
use std::str::FromStr;

/// What `GRADWIRE_TUNE` says. Its `Display` is a normal form, by which ranks can compare what they were told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    collective: Collective,
    from: usize,
    /// Exclusive.
    to: Option<usize>,
    algorithm: &'static dyn Algorithm,
}

/// An entry of `GRADWIRE_TUNE` that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("GRADWIRE_TUNE: in `{entry}`: {mistake}")]
pub(crate) struct TuningError {
    /// The entry, as it was written.
    pub entry: String,
    /// What is wrong with it.
    pub mistake: Mistake,
}

/// What is wrong with an entry.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Mistake {
    #[error("write COLLECTIVE:RANGE=ALGORITHM, as in all_reduce:0-64k=recursive_doubling,64k-=ring")]
    NoColon,
    #[error("write RANGE=ALGORITHM, as in 0-64k=recursive_doubling")]
    NoEquals,
    #[error("write FROM-TO, as in 0-64k, or FROM- for no upper end")]
    NoDash,
    #[error("`{0}` is no size: write a number of bytes, perhaps with k, m or g behind it, as in 64k")]
    Size(String),
    #[error("the range is empty: its upper end must be above its lower end")]
    Empty,
    #[error("the range overlaps an earlier one")]
    Overlap,
    #[error("`{name}` is not tunable; there are {}", Collective::ALL.map(Collective::name).join(", "))]
    Collective { name: String },
    #[error("{collective} has no algorithm `{name}`; there are {}", names(*collective))]
    Algorithm { collective: Collective, name: String },
}

fn names(collective: Collective) -> String {
    algorithms(collective).iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

impl Tuning {
    /// The algorithm named for a shape.
    pub(crate) fn named(&self, shape: &Shape) -> Option<&'static dyn Algorithm> {
        let applies = |rule: &&Rule| {
            rule.collective == shape.collective
                && rule.from <= shape.bytes()
                && rule.to.is_none_or(|to| shape.bytes() < to)
        };
        self.rules.iter().find(applies).map(|rule| rule.algorithm)
    }

    fn add(&mut self, collective: Collective, rule: &str) -> Result<(), Mistake> {
        let (range, name) = rule.split_once('=').ok_or(Mistake::NoEquals)?;
        let (from, to) = range.split_once('-').ok_or(Mistake::NoDash)?;
        let from = size(from.trim())?;
        let to = match to.trim() {
            "" => None,
            to => Some(size(to)?),
        };
        let name = name.trim();
        let algorithm = algorithms(collective)
            .iter()
            .find(|algorithm| algorithm.name() == name)
            .copied()
            .ok_or_else(|| Mistake::Algorithm { collective, name: name.to_owned() })?;
        let rule = Rule { collective, from, to, algorithm };
        if to.is_some_and(|to| to <= from) {
            return Err(Mistake::Empty);
        }
        if self.rules.iter().any(|other| rule.overlaps(other)) {
            return Err(Mistake::Overlap);
        }
        self.rules.push(rule);
        Ok(())
    }
}

impl Rule {
    fn overlaps(&self, other: &Self) -> bool {
        let ends_before = |a: &Self, b: &Self| a.to.is_some_and(|to| to <= b.from);
        self.collective == other.collective && !ends_before(self, other) && !ends_before(other, self)
    }
}

impl FromStr for Tuning {
    type Err = TuningError;

    fn from_str(text: &str) -> Result<Self, TuningError> {
        let mut tuning = Self::default();
        for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
            let wrong = |entry: &str, mistake| TuningError { entry: entry.to_owned(), mistake };
            let (name, rules) = entry.split_once(':').ok_or_else(|| wrong(entry, Mistake::NoColon))?;
            let name = name.trim();
            let collective = Collective::ALL
                .into_iter()
                .find(|collective| collective.name() == name)
                .ok_or_else(|| wrong(entry, Mistake::Collective { name: name.to_owned() }))?;
            for rule in rules.split(',').map(str::trim) {
                tuning.add(collective, rule).map_err(|mistake| wrong(rule, mistake))?;
            }
        }
        tuning.rules.sort_by_key(|rule| (rule.collective.name(), rule.from));
        Ok(tuning)
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for rule in &self.rules {
            match before.replace(rule.collective) {
                Some(collective) if collective == rule.collective => f.write_str(",")?,
                before => write!(f, "{}{}:", if before.is_some() { ";" } else { "" }, rule.collective)?,
            }
            write!(f, "{}-", rule.from)?;
            if let Some(to) = rule.to {
                write!(f, "{to}")?;
            }
            write!(f, "={}", rule.algorithm.name())?;
        }
        Ok(())
    }
}

/// `64k`.
fn size(text: &str) -> Result<usize, Mistake> {
    let wrong = || Mistake::Size(text.to_owned());
    let shift = match text.chars().next_back().map(|last| last.to_ascii_lowercase()) {
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    // `parse` would take a sign.
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let number: usize = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}
