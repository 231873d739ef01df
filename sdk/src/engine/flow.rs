//! The second part of a large collective: carries out the steps of a plan.
//!
//! Every step keeps a prefix of its range that is done. A step may follow another segment by segment where both have the
//! same range; otherwise it waits for the whole of it. Receiving is started for a few steps ahead, so that
//! staging memory stays bounded whatever the number of ranks.

use super::port::{Port, Process, Sent};
use super::slot::{Owner, Slots};
use super::transfer::{Breach, Incoming, Opening, Outgoing};
use super::{Key, Letter};
use crate::Rank;
use crate::buffer::{Reducer, Span};
use crate::plan::{Action, Peers, Plan, Step};
use gradwire_schema::{FrameHeader, FrameKind};
use gradwire_transport::Token;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::ops::Range;

/// Receiving steps that hold staging memory at the same time.
const RECEIVING: usize = 8;

/// What a planned collective works on.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) plan: Plan,
    /// The working vector.
    pub(crate) working: Span,
    /// `None` where nothing is reduced.
    pub(crate) reducer: Option<Reducer>,
}

/// A plan under way.
#[derive(Debug)]
pub(crate) struct Flow {
    key: Key,
    job: Job,
    /// Processes by rank.
    members: std::sync::Arc<[Process]>,
    steps: Vec<Running>,
    /// The first step that is not over.
    first: usize,
    /// By sender and channel: what arrived before its step was started. A message and an opening of the same two have
    /// nothing to do with each other: a short block may go one way and a long one the other.
    messages: HashMap<(Rank, u32), Vec<u8>>,
    openings: HashMap<(Rank, u32), (FrameHeader, Opening)>,
}

#[derive(Debug)]
struct Running {
    step: Step,
    /// Bytes of the range that are done, from its beginning.
    done: usize,
    over: bool,
    part: Part,
}

#[derive(Debug)]
enum Part {
    /// Not started.
    Idle,
    Sending(Outgoing),
    Receiving(Vec<Incoming>),
}

/// What the flow needs while it moves.
pub(crate) struct Context<'a> {
    pub(crate) port: &'a mut dyn Port,
    pub(crate) slots: &'a mut Slots,
    pub(crate) outbox: &'a mut Vec<Letter>,
    /// The header of every frame of the call, but for kind, tag and slot.
    pub(crate) header: FrameHeader,
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Flow {
    pub(crate) fn new(key: Key, job: Job, members: std::sync::Arc<[Process]>) -> Self {
        let steps =
            job.plan.steps().map(|step| Running { step, done: 0, over: false, part: Part::Idle }).collect();
        let (messages, openings) = Default::default();
        Self { key, job, members, steps, first: 0, messages, openings }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.first == self.steps.len()
    }

    /// Ranks that have still to send or to take something. Those of later steps come into question only while no
    /// earlier one does.
    pub(crate) fn waiting_for(&self) -> Vec<Rank> {
        let rank_of = |process: Process| self.members.iter().position(|member| *member == process);
        let mut ranks = Vec::new();
        for running in
            self.steps[self.first..].iter().filter(|running| !running.over && !running.step.range.is_empty())
        {
            let early = |rank: &Rank| self.messages.contains_key(&(*rank, running.step.channel));
            match (&running.part, running.step.action) {
                (Part::Sending(outgoing), _) => {
                    ranks.extend(rank_of(outgoing.peer).filter(|_| outgoing.is_wanting()));
                }
                (Part::Receiving(all), _) => {
                    ranks.extend(
                        all.iter().filter(|incoming| incoming.is_wanting()).filter_map(|i| rank_of(i.peer)),
                    );
                }
                (
                    Part::Idle,
                    Action::Receive { from } | Action::ReceiveReduce { from: Peers::One(from), .. },
                ) => {
                    ranks.extend(Some(from).filter(|rank| !early(rank)));
                }
                (Part::Idle, _) => {}
            }
        }
        ranks
    }

    /// Whether something has still to come from a rank: data, memory opened for ours, or word of our puts.
    pub(crate) fn needs(&self, rank: Rank, port: &dyn Port) -> bool {
        let Some(&process) = self.members.get(rank) else { return false };
        self.steps[self.first..].iter().any(|running| {
            let bytes = self.bytes(&running.step.range).len();
            if running.over || bytes == 0 {
                return false;
            }
            let key = (rank, running.step.channel);
            match (&running.part, running.step.action) {
                (Part::Sending(outgoing), _) => outgoing.peer == process && !outgoing.is_over(),
                (Part::Receiving(all), _) => {
                    all.iter().any(|incoming| incoming.peer == process && incoming.is_wanting())
                }
                (Part::Idle, Action::Send { to }) => {
                    to == rank && bytes > eager_limit(port, process) && !self.openings.contains_key(&key)
                }
                (Part::Idle, action) => {
                    receives_from(action, rank, self.job.plan.rank()) && !self.messages.contains_key(&key)
                }
            }
        })
    }

    /// Moves whatever can be moved.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) -> Result<(), (Process, Breach)> {
        loop {
            let mut moved = false;
            let mut receiving = 0;
            for index in self.first..self.steps.len() {
                if self.steps[index].over {
                    continue;
                }
                let receives = matches!(
                    self.steps[index].step.action,
                    Action::Receive { .. } | Action::ReceiveReduce { .. }
                );
                if receives {
                    receiving += 1;
                    if receiving > RECEIVING {
                        continue;
                    }
                }
                moved |= self.advance_step(index, context)?;
            }
            while self.steps.get(self.first).is_some_and(|running| running.over) {
                self.first += 1;
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// A small message of a step.
    pub(crate) fn deliver(&mut self, from: Rank, channel: u32, payload: &[u8]) -> Result<(), Breach> {
        if let Some(incoming) = self.incoming(from, channel) {
            return incoming.deliver(payload);
        }
        let own = self.job.plan.rank();
        if !self.expects(channel, |action| receives_from(action, from, own)) {
            return Err(UNEXPECTED);
        }
        keep(&mut self.messages, (from, channel), payload.to_vec())
    }

    /// The receiver of a step opened its memory.
    pub(crate) fn open(&mut self, from: Rank, header: &FrameHeader, opening: Opening) -> Result<(), Breach> {
        if let Some(outgoing) = self.outgoing(from, header.tag) {
            return outgoing.open(header, opening);
        }
        if !self.expects(header.tag, |action| matches!(action, Action::Send { to } if to == from)) {
            return Err(UNEXPECTED);
        }
        keep(&mut self.openings, (from, header.tag), (*header, opening))
    }

    /// The receiver of a step has room for more.
    pub(crate) fn credit(&mut self, from: Rank, channel: u32, total: u64) -> Result<(), Breach> {
        match self.outgoing(from, channel) {
            Some(outgoing) => outgoing.credit(total),
            None => Err(Breach("it granted room for a message that is not under way")),
        }
    }

    pub(crate) fn notified(&mut self, owner: Owner, peer: Process, segment: u16) {
        if let Some(Running { part: Part::Receiving(all), .. }) = self.steps.get_mut(owner.step as usize)
            && let Some(incoming) = all.get_mut(owner.source as usize)
            && incoming.peer == peer
        {
            incoming.notified(segment);
        }
    }

    pub(crate) fn put_done(&mut self, step: u32, port: &mut dyn Port) {
        if let Some(Running { part: Part::Sending(outgoing), .. }) = self.steps.get_mut(step as usize) {
            outgoing.put_done(port);
        }
    }

    /// Ends everything, wherever it stands: neither a peer nor a queue touches the memory afterwards.
    pub(crate) fn close(&mut self, port: &mut dyn Port, slots: &mut Slots) {
        for running in &mut self.steps {
            match &mut running.part {
                Part::Idle => {}
                Part::Sending(outgoing) => outgoing.close(port),
                Part::Receiving(all) => {
                    all.iter_mut()
                        .filter_map(|incoming| incoming.close(port))
                        .for_each(|slot| slots.give_back(slot));
                }
            }
        }
    }

    fn advance_step(&mut self, index: usize, context: &mut Context<'_>) -> Result<bool, (Process, Breach)> {
        let available = self.available(index);
        let bytes = self.bytes(&self.steps[index].step.range);
        let running = &self.steps[index];
        if bytes.is_empty() || matches!(running.step.action, Action::Finish | Action::Copy { .. }) {
            return Ok(self.finish_at_once(index, available));
        }
        let whole = available == bytes.len();
        match running.step.action {
            Action::Send { to } => self.send(index, to, available, whole, context),
            Action::Receive { from } => {
                let span = self.job.working.part(bytes);
                // Memory that is still read by an earlier step is opened for the peer only when that is over.
                if matches!(running.part, Part::Idle) && !whole {
                    return Ok(false);
                }
                self.receive(index, &[from], span, available, context)
            }
            Action::ReceiveReduce { from: Peers::One(from), .. } => {
                self.receive(index, &[from], None, available, context)
            }
            Action::ReceiveReduce { from: Peers::AllOthers, .. } => {
                let own = self.job.plan.rank();
                let others: Vec<Rank> = (0..self.members.len()).filter(|rank| *rank != own).collect();
                self.receive(index, &others, None, available, context)
            }
            Action::ReceiveReduce { from: Peers::LowerFrom(first), .. } => {
                let lower: Vec<Rank> = (first..self.job.plan.rank()).collect();
                self.receive(index, &lower, None, available, context)
            }
            Action::Finish | Action::Copy { .. } => Ok(false),
        }
    }

    fn finish_at_once(&mut self, index: usize, available: usize) -> bool {
        let running = &self.steps[index];
        let bytes = self.bytes(&running.step.range);
        if available < bytes.len() || bytes.is_empty() && self.blocked(index) {
            return false;
        }
        if !bytes.is_empty()
            && let Some(span) = self.job.working.part(bytes.clone())
        {
            match (running.step.action, &self.job.reducer) {
                (Action::Copy { from }, _) => {
                    let source = self.bytes(&(from..from + running.step.range.len()));
                    self.job.working.part(source).into_iter().for_each(|source| span.copy_from(source));
                }
                (Action::Finish, Some(reducer)) => reducer.fold(&[span], span, Some(self.contributions())),
                _ => {}
            }
        }
        let running = &mut self.steps[index];
        running.done = bytes.len();
        running.over = true;
        true
    }

    fn send(
        &mut self,
        index: usize,
        to: Rank,
        available: usize,
        whole: bool,
        context: &mut Context<'_>,
    ) -> Result<bool, (Process, Breach)> {
        let (peer, step) = (self.members[to], self.steps[index].step.clone());
        let bytes = self.bytes(&step.range);
        let Some(span) = self.job.working.part(bytes.clone()) else { return Ok(false) };
        if bytes.len() <= eager_limit(context.port, peer) {
            if !whole {
                return Ok(false);
            }
            let mut header = context.header;
            (header.kind, header.tag, header.payload_len) =
                (FrameKind::Eager, step.channel, bytes.len() as u64);
            context.scratch.clear();
            context.scratch.extend_from_slice(&header.encode());
            span.append_to(context.scratch);
            if context.port.send(peer, context.scratch) == Sent::Full {
                return Ok(false);
            }
            let running = &mut self.steps[index];
            (running.done, running.over) = (bytes.len(), true);
            return Ok(true);
        }
        let mut moved = false;
        if matches!(self.steps[index].part, Part::Idle) {
            let token = Token(u64::from(self.key.0) << 32 | index as u64);
            let mut outgoing = Outgoing::new(peer, token, span, self.job.plan.shape().element_size);
            if let Some((header, opening)) = self.openings.remove(&(to, step.channel)) {
                outgoing.open(&header, opening).map_err(|breach| (peer, breach))?;
            }
            self.steps[index].part = Part::Sending(outgoing);
            moved = true;
        }
        let running = &mut self.steps[index];
        if let Part::Sending(outgoing) = &mut running.part {
            moved |= outgoing.advance(available, context.port).map_err(|breach| (peer, breach))?;
            if outgoing.is_over() {
                (running.done, running.over) = (bytes.len(), true);
                moved = true;
            }
        }
        Ok(moved)
    }

    fn receive(
        &mut self,
        index: usize,
        from: &[Rank],
        target: Option<Span>,
        available: usize,
        context: &mut Context<'_>,
    ) -> Result<bool, (Process, Breach)> {
        let mut moved = self.start_receiving(index, from, target, context)?;
        let step = self.steps[index].step.clone();
        let bytes = self.bytes(&step.range);
        let contributions = self.contributions();
        loop {
            let running = &mut self.steps[index];
            let Part::Receiving(all) = &mut running.part else { return Ok(moved) };
            let Some(segments) = all.iter_mut().map(Incoming::next).collect::<Option<Vec<_>>>() else {
                break;
            };
            let Some(range) = segments.first().map(|segment| segment.range.clone()) else { break };
            if range.end > available {
                break;
            }
            let Some(own) = self.job.working.part(bytes.start + range.start..bytes.start + range.end) else {
                break;
            };
            let sources = segments.iter().map(|segment| segment.bytes);
            match (step.action, &self.job.reducer) {
                (Action::ReceiveReduce { last, .. }, Some(reducer)) => {
                    let rank = self.job.plan.rank();
                    let before = from.iter().filter(|other| **other < rank).count();
                    let mut operands: Vec<Span> = sources.flatten().collect();
                    operands.insert(before.min(operands.len()), own);
                    let contributions = Some(contributions).filter(|_| last);
                    reducer.fold(&operands, own, contributions);
                }
                _ => sources.flatten().for_each(|source| own.copy_from(source)),
            }
            for incoming in all.iter_mut() {
                if let Some(total) = incoming.consume() {
                    let mut header = context.header;
                    (header.kind, header.tag, header.offset) = (FrameKind::Credit, step.channel, total);
                    context.outbox.push(Letter::new(incoming.peer, header, &[]));
                }
            }
            running.done = range.end;
            moved = true;
        }
        let running = &mut self.steps[index];
        if let Part::Receiving(all) = &mut running.part
            && all.iter().all(Incoming::is_over)
        {
            all.iter_mut()
                .filter_map(|incoming| incoming.close(context.port))
                .for_each(|slot| context.slots.give_back(slot));
            running.over = true;
            moved = true;
        }
        Ok(moved)
    }

    /// Opens memory for the senders of a step, as far as slots and memory suffice.
    fn start_receiving(
        &mut self,
        index: usize,
        from: &[Rank],
        target: Option<Span>,
        context: &mut Context<'_>,
    ) -> Result<bool, (Process, Breach)> {
        let step = &self.steps[index].step;
        let (len, channel) = (self.bytes(&step.range).len(), step.channel);
        if matches!(self.steps[index].part, Part::Idle) {
            let unit = self.job.plan.shape().element_size;
            let all = from.iter().map(|rank| Incoming::new(self.members[*rank], len, unit)).collect();
            self.steps[index].part = Part::Receiving(all);
        }
        let Part::Receiving(all) = &mut self.steps[index].part else { return Ok(false) };
        let mut moved = false;
        for (source, (incoming, rank)) in all.iter_mut().zip(from).enumerate() {
            if incoming.is_open() || incoming.is_over() {
                continue;
            }
            if len <= eager_limit(context.port, incoming.peer) {
                if let Some(bytes) = self.messages.remove(&(*rank, channel)) {
                    incoming.deliver(&bytes).map_err(|breach| (incoming.peer, breach))?;
                    moved = true;
                }
                continue;
            }
            let owner = Owner { operation: self.key, step: index as u32, source: source as u32 };
            let Some(slot) = context.slots.take(owner) else { continue };
            let Some(opening) = incoming.open(slot, target, context.port) else {
                context.slots.give_back(slot);
                continue;
            };
            let mut header = context.header;
            (header.kind, header.tag, header.slot) = (FrameKind::Ready, channel, u32::from(slot));
            context.outbox.push(Letter::new(incoming.peer, header, &opening.encode()));
            moved = true;
        }
        Ok(moved)
    }

    /// Bytes of a step's range that the steps it waits for have left free.
    fn available(&self, index: usize) -> usize {
        let step = &self.steps[index].step;
        let len = self.bytes(&step.range).len();
        step.after
            .iter()
            .flatten()
            .filter_map(|after| self.steps.get(*after as usize))
            .map(|after| match after {
                after if after.over => len,
                after if after.step.range == step.range => after.done,
                _ => 0,
            })
            .min()
            .unwrap_or(len)
    }

    /// Whether a step that this one waits for is not over.
    fn blocked(&self, index: usize) -> bool {
        let after = self.steps[index].step.after;
        after.iter().flatten().any(|after| self.steps.get(*after as usize).is_some_and(|after| !after.over))
    }

    /// How many contributions the result is made of.
    fn contributions(&self) -> NonZeroU64 {
        self.job.plan.shape().contributions(self.job.plan.rank())
    }

    fn bytes(&self, range: &Range<usize>) -> Range<usize> {
        self.job.plan.shape().byte_range(range)
    }

    fn incoming(&mut self, from: Rank, channel: u32) -> Option<&mut Incoming> {
        let process = *self.members.get(from)?;
        self.steps[self.first..].iter_mut().find_map(|running| match &mut running.part {
            Part::Receiving(all) if running.step.channel == channel && !running.over => {
                all.iter_mut().find(|incoming| incoming.peer == process)
            }
            _ => None,
        })
    }

    fn outgoing(&mut self, to: Rank, channel: u32) -> Option<&mut Outgoing> {
        let process = *self.members.get(to)?;
        self.steps[self.first..].iter_mut().find_map(|running| match &mut running.part {
            Part::Sending(outgoing) if running.step.channel == channel && outgoing.peer == process => {
                Some(outgoing)
            }
            _ => None,
        })
    }

    /// Whether a step on a channel that was not started yet waits for something.
    fn expects(&self, channel: u32, waits: impl Fn(Action) -> bool) -> bool {
        self.steps[self.first..].iter().any(|running| {
            let step = &running.step;
            step.channel == channel && matches!(running.part, Part::Idle) && waits(step.action)
        })
    }
}

const UNEXPECTED: Breach = Breach("it sent what no step of the call expects");

/// Keeps what came before its step. A peer cannot send more than the plan has steps between the two.
fn keep<V>(early: &mut HashMap<(Rank, u32), V>, key: (Rank, u32), value: V) -> Result<(), Breach> {
    if early.insert(key, value).is_some() { Err(UNEXPECTED) } else { Ok(()) }
}

/// Whether a step of rank `own` receives from a rank.
fn receives_from(action: Action, from: Rank, own: Rank) -> bool {
    match action {
        Action::Receive { from: rank } | Action::ReceiveReduce { from: Peers::One(rank), .. } => rank == from,
        Action::ReceiveReduce { from: Peers::LowerFrom(first), .. } => (first..own).contains(&from),
        Action::ReceiveReduce { from: Peers::AllOthers, .. } => from != own,
        Action::Send { .. } | Action::Finish | Action::Copy { .. } => false,
    }
}

/// The longest payload that is sent unasked. Both sides compute it alike.
pub(crate) fn eager_limit(port: &dyn Port, peer: Process) -> usize {
    port.message_limit(peer).saturating_sub(FrameHeader::LEN)
}
