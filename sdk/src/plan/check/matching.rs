//! Sends and their receivers.

use super::{Action, Shape, Step};
use crate::plan::{Collective, Peers};
use std::collections::HashMap;

/// For every rank and step that is a send: the receiving rank's step.
pub(super) type Receivers = HashMap<(usize, usize), usize>;

/// Pairs each send with the one step that receives it.
pub(super) fn check(shape: &Shape, plans: &[Vec<Step>]) -> Result<Receivers, String> {
    let mut expected = HashMap::new();
    for (rank, index, step) in all(plans).filter(|(_, _, step)| step.writes()) {
        for from in peers(step, rank, plans.len()) {
            if expected.insert((from, rank, step.channel), index).is_some() {
                return Err(format!("rank {rank} receives twice from {from} on channel {}", step.channel));
            }
        }
    }
    let mut receivers = Receivers::new();
    for (rank, index, step) in all(plans) {
        let Action::Send { to } = step.action else { continue };
        let Some(receiver) = expected.remove(&(rank, to, step.channel)) else {
            return Err(format!("rank {rank}, step {index}: nobody receives {step:?}"));
        };
        let (sent, received) = (&step.range, &plans[to][receiver].range);
        let fits = match shape.collective {
            Collective::AllToAll => sent.len() == received.len(),
            _ => sent == received,
        };
        if !fits {
            return Err(format!("rank {rank} sends {step:?}, rank {to} receives {:?}", plans[to][receiver]));
        }
        receivers.insert((rank, index), receiver);
    }
    match expected.keys().next() {
        Some((from, to, channel)) => Err(format!("rank {from} never sends to {to} on channel {channel}")),
        None => Ok(receivers),
    }
}

fn all(plans: &[Vec<Step>]) -> impl Iterator<Item = (usize, usize, &Step)> {
    plans
        .iter()
        .enumerate()
        .flat_map(|(rank, steps)| steps.iter().enumerate().map(move |(index, step)| (rank, index, step)))
}

/// The ranks at the other end of a step.
pub(super) fn peers(step: &Step, rank: usize, ranks: usize) -> Vec<usize> {
    match step.action {
        Action::Send { to: peer } | Action::Receive { from: peer } => vec![peer],
        Action::ReceiveReduce { from: Peers::One(peer), .. } => vec![peer],
        Action::ReceiveReduce { from: Peers::AllOthers, .. } => {
            (0..ranks).filter(|&peer| peer != rank).collect()
        }
        Action::ReceiveReduce { from: Peers::LowerFrom(first), .. } => (first..rank).collect(),
        Action::Finish | Action::Copy { .. } => Vec::new(),
    }
}
