//! Carries out the plans of all ranks with as little memory as an executor can have: of each rank one receiving step is
//! open at a time, in the order of the plan, and a send waits until its receiver is open.

use super::matching::{Receivers, peers};
use super::terms::{Term, Terms, Value};
use super::{Action, Shape, Step};
use crate::plan::Collective;
use std::collections::HashMap;

/// The working vectors of all ranks after all steps.
pub(super) fn run(
    shape: &Shape,
    plans: &[Vec<Step>],
    receivers: &Receivers,
    terms: &mut Terms,
) -> Result<Vec<Vec<Value>>, String> {
    let mut run = Run::new(shape, plans, receivers, terms);
    while run.turn()? {}
    run.stuck().map_or(Ok(run.vectors), Err)
}

/// What a rank holds at the start. Where ranks have index spaces of their own it matters from where an element comes.
pub(super) fn contribution(shape: &Shape, rank: usize, element: usize) -> Term {
    match shape.collective {
        Collective::AllToAll => Term::Element(rank, element),
        _ => Term::Contribution(rank),
    }
}

struct Run<'a> {
    plans: &'a [Vec<Step>],
    receivers: &'a Receivers,
    terms: &'a mut Terms,
    exact_partials: bool,
    vectors: Vec<Vec<Value>>,
    done: Vec<Vec<bool>>,
    /// Of each rank, the sends that are not done.
    sends: Vec<Vec<usize>>,
    /// Of each rank, the first receiving step that is not done, or the number of steps.
    open: Vec<usize>,
    /// By sender, receiver and channel.
    mail: HashMap<(usize, usize, u32), Vec<Value>>,
}

impl<'a> Run<'a> {
    fn new(shape: &Shape, plans: &'a [Vec<Step>], receivers: &'a Receivers, terms: &'a mut Terms) -> Self {
        let nothing = terms.value(Term::Nothing);
        let mut vector = |rank| {
            let mut vector = vec![nothing; shape.len_of(rank)];
            for element in shape.input(rank) {
                vector[element] = terms.value(contribution(shape, rank, element));
            }
            vector
        };
        let sends = |steps: &Vec<Step>| (0..steps.len()).filter(|&index| !steps[index].writes()).collect();
        let open = |steps: &Vec<Step>| steps.iter().position(Step::writes).unwrap_or(steps.len());
        Self {
            vectors: (0..shape.ranks).map(&mut vector).collect(),
            done: plans.iter().map(|steps| vec![false; steps.len()]).collect(),
            sends: plans.iter().map(sends).collect(),
            open: plans.iter().map(open).collect(),
            mail: HashMap::new(),
            exact_partials: shape.exact_partials,
            plans,
            receivers,
            terms,
        }
    }

    /// Takes every step that may be taken; whether there was one.
    fn turn(&mut self) -> Result<bool, String> {
        let mut progress = false;
        for rank in 0..self.plans.len() {
            let mut waiting = Vec::new();
            for index in std::mem::take(&mut self.sends[rank]) {
                if self.send(rank, index)? {
                    progress = true;
                } else {
                    waiting.push(index);
                }
            }
            self.sends[rank] = waiting;
            while self.receive(rank)? {
                progress = true;
            }
        }
        Ok(progress)
    }

    fn may_begin(&self, rank: usize, index: usize) -> bool {
        self.plans[rank][index].after.iter().flatten().all(|&other| self.done[rank][other as usize])
    }

    fn send(&mut self, rank: usize, index: usize) -> Result<bool, String> {
        let step = &self.plans[rank][index];
        let Action::Send { to } = step.action else { return Ok(false) };
        let receiver = self.receivers[&(rank, index)];
        let overwrites = matches!(self.plans[to][receiver].action, Action::Receive { .. });
        if !self.may_begin(rank, index)
            || self.open[to] != receiver
            || (overwrites && !self.may_begin(to, receiver))
        {
            return Ok(false);
        }
        let values = &self.vectors[rank][step.range.clone()];
        if values.contains(&self.terms.value(Term::Nothing)) {
            return Err(format!("rank {rank}, step {index} sends what it does not have: {step:?}"));
        }
        self.mail.insert((rank, to, step.channel), values.to_vec());
        self.done[rank][index] = true;
        Ok(true)
    }

    /// Takes the open step of a rank if all is there that it needs.
    fn receive(&mut self, rank: usize) -> Result<bool, String> {
        let index = self.open[rank];
        let Some(step) = self.plans[rank].get(index) else { return Ok(false) };
        let senders = peers(step, rank, self.plans.len());
        let letter = |from: usize| (from, rank, step.channel);
        if !self.may_begin(rank, index) || !senders.iter().all(|&from| self.mail.contains_key(&letter(from)))
        {
            return Ok(false);
        }
        let mut operands = vec![];
        if let Action::Copy { from } = step.action {
            operands.push((rank, self.vectors[rank][from..from + step.range.len()].to_vec()));
        }
        let own = &mut self.vectors[rank][step.range.clone()];
        for from in senders {
            operands.extend(self.mail.remove(&letter(from)).map(|values| (from, values)));
        }
        let last = match step.action {
            Action::ReceiveReduce { last, .. } => {
                operands.push((rank, own.to_vec()));
                operands.sort();
                last
            }
            Action::Finish => {
                operands.push((rank, own.to_vec()));
                true
            }
            Action::Receive { .. } | Action::Send { .. } | Action::Copy { .. } => false,
        };
        if matches!(step.action, Action::ReceiveReduce { last: false, .. }) && !self.exact_partials {
            return Err(format!("rank {rank}, step {index} writes a partial result: {step:?}"));
        }
        for (position, value) in own.iter_mut().enumerate() {
            if let Some(folded) = self.terms.fold(operands.iter().map(|(_, values)| values[position])) {
                *value = if last { self.terms.value(Term::Finished(folded)) } else { folded };
            }
        }
        self.done[rank][index] = true;
        let later = self.plans[rank][index + 1..].iter().position(Step::writes);
        self.open[rank] = later.map_or(self.plans[rank].len(), |later| index + 1 + later);
        Ok(true)
    }

    /// Which step was never taken.
    fn stuck(&self) -> Option<String> {
        self.done.iter().enumerate().find_map(|(rank, done)| {
            let index = done.iter().position(|done| !done)?;
            Some(format!("stuck: rank {rank}, step {index}: {:?}", self.plans[rank][index]))
        })
    }
}
