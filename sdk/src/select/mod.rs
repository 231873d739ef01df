//! Which algorithm carries out a call: the cheapest by the links' model, unless `GRADWIRE_TUNE` names one.
//!
//! A pure function of shape, links and tuning. Ranks that pass the same choose the same, and only then do their plans fit
//! together.
#![forbid(unsafe_code)]

mod tuning;

pub(crate) use tuning::Tuning;

use crate::Rank;
use crate::plan::{Algorithm, Links, Plan, Shape, algorithms};
use std::fmt::Write;

/// What a job chooses by.
#[derive(Debug)]
pub(crate) struct Selector {
    pub(crate) links: Links,
    pub(crate) tuning: Tuning,
}

impl Selector {
    /// The plan of a rank, by the algorithm that [`select`] chooses.
    pub(crate) fn plan(&self, shape: &Shape, rank: Rank) -> Plan {
        Plan::new(select(shape, &self.links, &self.tuning), shape.clone(), rank)
    }
}

/// The algorithm for a shape: the one that the tuning names, if it serves the shape, else the cheapest that does.
/// Of equally cheap ones the first listed.
pub(crate) fn select(shape: &Shape, links: &Links, tuning: &Tuning) -> &'static dyn Algorithm {
    let all = algorithms(shape.collective);
    if let Some(named) = tuning.named(shape).filter(|algorithm| algorithm.excluded(shape).is_none()) {
        return named;
    }
    let seconds = |algorithm: &dyn Algorithm| algorithm.cost(shape).seconds(links);
    all.iter()
        .copied()
        .filter(|algorithm| algorithm.excluded(shape).is_none())
        .min_by(|a, b| seconds(*a).total_cmp(&seconds(*b)))
        .unwrap_or(all[0]) // the first serves every shape
}

/// Why [`select`] chooses what it chooses: a table of the candidates.
///
/// ```text
/// all_reduce of 1.00 MiB on 4 ranks
///   algorithm              modelled  rounds  messages      bytes    reduced
///   owner_computes         747.0 µs       2         6   1.50 MiB 768.00 KiB
///   recursive_doubling     919.8 µs       2         2   2.00 MiB   2.00 MiB
/// > rabenseifner           624.9 µs       4         4   1.50 MiB 768.00 KiB  cheapest
///   ring                   635.9 µs       6         6   1.50 MiB 768.00 KiB
/// ```
pub(crate) fn explain(shape: &Shape, links: &Links, tuning: &Tuning) -> String {
    let mut table = format!(
        "{} of {} on {} {}\n",
        shape.collective,
        bytes(shape.bytes() as f64),
        shape.ranks,
        if shape.ranks == 1 { "rank: nothing to choose" } else { "ranks" },
    );
    if shape.ranks == 1 {
        return table;
    }
    let chosen = select(shape, links, tuning).name();
    let named = tuning.named(shape).map(Algorithm::name);
    _ = writeln!(
        table,
        "  {:20} {:>10} {:>7} {:>9} {:>10} {:>10}",
        "algorithm", "modelled", "rounds", "messages", "bytes", "reduced"
    );
    for algorithm in algorithms(shape.collective) {
        let name = algorithm.name();
        let asked = if named == Some(name) { "named by GRADWIRE_TUNE" } else { "" };
        if let Some(reason) = algorithm.excluded(shape) {
            let asked = if asked.is_empty() { "" } else { ", though named by GRADWIRE_TUNE" };
            _ = writeln!(table, "  {name:20} cannot: {reason}{asked}");
            continue;
        }
        let cost = algorithm.cost(shape);
        let why = if name == chosen && asked.is_empty() { "cheapest" } else { asked };
        let line = format!(
            "{} {name:20} {:>10} {:>7} {:>9} {:>10} {:>10}  {why}",
            if name == chosen { '>' } else { ' ' },
            seconds(cost.seconds(links)),
            cost.rounds,
            cost.messages,
            bytes(cost.bytes + cost.crossing_bytes),
            bytes(cost.reduced_bytes),
        );
        _ = writeln!(table, "{}", line.trim_end());
    }
    table
}

/// `1.50 MiB`.
fn bytes(bytes: f64) -> String {
    match bytes {
        ..1024.0 => format!("{bytes:.0} B"),
        ..1_048_576.0 => format!("{:.2} KiB", bytes / 1024.0),
        ..1_073_741_824.0 => format!("{:.2} MiB", bytes / 1_048_576.0),
        _ => format!("{:.2} GiB", bytes / 1_073_741_824.0),
    }
}

/// `12.3 µs`.
fn seconds(seconds: f64) -> String {
    match seconds {
        ..1e-3 => format!("{:.1} µs", seconds * 1e6),
        ..1.0 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests;
