//! An operation under way: a collective, from the agreement on it to its end, or one end of a point-to-point message.

use super::agreement::{Agreement, Contribution};
use super::flow::{Context, Flow, Job};
use super::group::Group;
use super::message::{Found, Pattern, Payload, Probing, Receiving, Sending};
use super::port::{Port, Process};
use super::slot::{Owner, Slots};
use super::transfer::{Breach, Opening};
use super::{Begin, Key, Letter};
use crate::buffer::Span;
use crate::{Call, Error, Rank};
use gradwire_schema::{CallSignature, FrameHeader, FrameKind, MismatchTable};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// A collective so small that its data travel with the signatures.
    Exchange { own: Vec<u8>, contribution: Contribution },
    /// A collective with a plan.
    Planned(Job),
    /// A collective of several parts.
    InParts(Box<Self>, Then),
    Send {
        to: Rank,
        tag: u32,
        kind: u64,
        payload: Payload,
        /// Over only once the receiver has matched it.
        synchronous: bool,
    },
    Receive {
        pattern: Pattern,
        /// The message that a probe holds.
        number: Option<u64>,
        kind: u64,
        span: Span,
    },
    /// Ends when there is a message.
    Probe(Probing),
}

impl Work {
    /// Whether all members take part.
    pub(crate) fn is_collective(&self) -> bool {
        matches!(self, Self::Exchange { .. } | Self::Planned(_) | Self::InParts(..))
    }
}

/// A later part of a collective. All ranks make the same of what all have heard in the part before, or the same error: so
/// they need not agree again.
#[derive(Debug)]
pub(crate) struct Part {
    /// Another one than those of the other parts.
    pub(crate) signature: CallSignature,
    pub(crate) job: Job,
    pub(crate) then: Option<Then>,
}

/// Makes a part of how the part before has ended.
pub(crate) struct Then {
    /// How many there are from this one on, at most.
    parts: usize,
    make: Box<dyn FnOnce(Outcome) -> Result<Part, Error> + Send>,
}

impl Then {
    pub(crate) fn new(
        parts: usize,
        make: impl FnOnce(Outcome) -> Result<Part, Error> + Send + 'static,
    ) -> Self {
        Self { parts, make: Box::new(make) }
    }
}

impl fmt::Debug for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Then").field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// How an operation ended well.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done,
    /// All contributions, in rank order.
    Gathered(Vec<u8>),
    /// Whose message it was, its tag and its bytes.
    Received {
        source: Rank,
        tag: u32,
        len: usize,
    },
    /// A message that waits.
    Found(Found),
}

/// Where a peer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The number of its next call.
    pub(crate) calls: u64,
    /// It is in a call, and waits for others itself.
    pub(crate) waits: bool,
}

/// An operation under way.
#[derive(Debug)]
pub(crate) struct Operation {
    key: Key,
    pub(crate) begin: Begin,
    /// The number of the call as users count.
    number: u64,
    members: Arc<[Process]>,
    rank: Rank,
    header: FrameHeader,
    state: State,
    /// What follows on the part that is under way.
    then: Option<Then>,
    held: Vec<Held>,
    /// When the peers are asked whom everybody waits for, and what they answered.
    pub(crate) probed: bool,
    /// The peers were asked whether they have begun it.
    pub(crate) asked: bool,
    pub(crate) answers: Vec<Option<Answer>>,
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Agreeing { agreement: Agreement, job: Option<Job> },
    Flowing(Flow),
    Sending(Sending),
    Receiving(Receiving),
    Probing(Probing),
    Over,
}

/// A frame of a later part than the one that this rank has come to.
type Held = (Rank, FrameHeader, Vec<u8>);

type Ended = Option<Result<Outcome, Error>>;

impl Operation {
    pub(crate) fn new(key: Key, begin: Begin, work: Work, group: &Group) -> Self {
        let (members, rank) = (group.members.clone(), group.rank);
        let mut header = begin.group.header(FrameKind::Agree, rank);
        (header.sequence, header.signature) = (begin.sequence, begin.signature.hash());
        let agree = |contribution, own: &[u8]| {
            Agreement::new(rank, members.len(), begin.signature, contribution, own)
        };
        let (work, then) = match work {
            Work::InParts(first, then) => (*first, Some(then)),
            work => (work, None),
        };
        let state = match work {
            Work::Exchange { own, contribution } => {
                State::Agreeing { agreement: agree(contribution, &own), job: None }
            }
            Work::Planned(job) => {
                State::Agreeing { agreement: agree(Contribution::NOTHING, &[]), job: Some(job) }
            }
            Work::Send { to, tag, kind, payload, synchronous } => {
                (header.tag, header.signature, header.sequence) = (tag, kind, 0);
                State::Sending(Sending::new((to, members[to]), header, payload, synchronous))
            }
            Work::Receive { pattern, number, kind, span } => {
                State::Receiving(Receiving::new(pattern, number, kind, span))
            }
            Work::Probe(probing) => State::Probing(probing),
            // A part has no parts.
            Work::InParts(..) => State::Over,
        };
        let deadline = begin.timeout.and_then(|timeout| begin.started.checked_add(timeout));
        Self {
            key,
            number: group.calls.number(begin.sequence),
            answers: vec![None; members.len()],
            begin,
            members,
            rank,
            header,
            state,
            then,
            held: Vec::new(),
            probed: false,
            asked: false,
            deadline,
        }
    }

    pub(crate) fn is_collective(&self) -> bool {
        matches!(self.state, State::Agreeing { .. } | State::Flowing(_))
    }

    /// Whether it waits for a message to come.
    pub(crate) fn is_posted(&self) -> bool {
        matches!(&self.state, State::Receiving(Receiving { matched: None, .. }) | State::Probing(_))
    }

    /// To whom, when it is a send of which nothing has left yet.
    pub(crate) fn queued_to(&self) -> Option<Rank> {
        match &self.state {
            State::Sending(sending) if sending.is_queued() => Some(sending.to),
            _ => None,
        }
    }

    /// Bytes that the library keeps for it, where it is a buffered send.
    pub(crate) fn buffered(&self) -> Option<usize> {
        if let State::Sending(sending) = &self.state { sending.buffered() } else { None }
    }

    /// Whether it cannot end without something that is still to come from the rank. What a later part of it needs shows
    /// when it comes to that part.
    pub(crate) fn needs(&self, rank: Rank, port: &dyn Port) -> bool {
        match &self.state {
            State::Agreeing { agreement, .. } => agreement.waiting_for().any(|awaited| awaited == rank),
            State::Flowing(flow) => flow.needs(rank, port),
            State::Sending(sending) => sending.to == rank && !sending.is_over(),
            State::Receiving(Receiving { matched: Some(matched), .. }) => matched.head.source == rank,
            State::Receiving(Receiving { pattern, .. }) | State::Probing(Probing { pattern, .. }) => {
                pattern.source == Some(rank)
            }
            State::Over => false,
        }
    }

    /// Whether the ranks have still to agree on what they call.
    pub(crate) fn is_agreeing(&self) -> bool {
        matches!(self.state, State::Agreeing { .. })
    }

    /// Whether nobody has told this rank yet that the other one has made the call.
    pub(crate) fn has_not_heard(&self, rank: Rank) -> bool {
        matches!(&self.state, State::Agreeing { agreement, .. } if !agreement.has_heard(rank))
    }

    /// The ranks that it waits for, as far as it can tell by itself.
    pub(crate) fn waiting_for(&self) -> Vec<Rank> {
        match &self.state {
            State::Agreeing { agreement, .. } => agreement.waiting_for().collect(),
            State::Flowing(flow) => flow.waiting_for(),
            State::Sending(sending) => {
                Some(sending.to).filter(|_| sending.is_wanting()).into_iter().collect()
            }
            State::Receiving(Receiving { matched: Some(matched), .. }) => vec![matched.head.source],
            State::Receiving(Receiving { pattern: Pattern { source: Some(source), .. }, .. })
            | State::Probing(Probing { pattern: Pattern { source: Some(source), .. }, .. }) => vec![*source],
            State::Over => Vec::new(),
            State::Receiving(_) | State::Probing(_) => {
                (0..self.members.len()).filter(|rank| *rank != self.rank).collect()
            }
        }
    }

    /// For messages: what was called.
    pub(crate) fn call(&self) -> Call {
        match &self.state {
            State::Agreeing { .. } | State::Flowing(_) | State::Over => {
                call(&self.begin.signature, self.number)
            }
            State::Sending(sending) => {
                let name = if sending.is_synchronous() { "synchronous_send" } else { "send" };
                message_call(name, Some(self.header.tag))
            }
            State::Receiving(receiving) => message_call("recv", receiving.pattern.tag),
            State::Probing(probing) => message_call("probe", probing.pattern.tag),
        }
    }

    /// Whether time alone may let it go on: it is advanced at every turn. The others wait for an event of their own.
    pub(crate) fn is_restless(&self) -> bool {
        match &self.state {
            State::Agreeing { .. } | State::Flowing(_) => true,
            State::Sending(sending) => sending.is_held_up(),
            State::Receiving(receiving) => receiving.is_held_up(),
            State::Probing(_) | State::Over => false,
        }
    }

    /// Moves whatever can be moved. `Some`: it has ended.
    pub(crate) fn advance(
        &mut self,
        port: &mut dyn Port,
        slots: &mut Slots,
        outbox: &mut Vec<Letter>,
        scratch: &mut Vec<u8>,
    ) -> Result<Ended, (Process, Breach)> {
        if let State::Agreeing { agreement, .. } = &mut self.state {
            let mut payload = Vec::new();
            while let Some((to, kind, round)) = agreement.tell(&mut payload) {
                let mut header = self.header;
                (header.kind, header.offset) = (kind, u64::from(round));
                outbox.push(Letter::new(self.members[to], header, &payload));
            }
            if !agreement.is_over() {
                return Ok(None);
            }
            if let Some(ended) = self.agreed() {
                return Ok(Some(ended));
            }
            self.take_held()?;
        }
        while let State::Flowing(flow) = &mut self.state {
            let mut context = Context {
                port: &mut *port,
                slots: &mut *slots,
                outbox: &mut *outbox,
                header: self.header,
                scratch: &mut *scratch,
            };
            flow.advance(&mut context)?;
            if !flow.is_over() {
                return Ok(None);
            }
            let Some(then) = self.then.take() else { return Ok(Some(Ok(Outcome::Done))) };
            if let Some(ended) = self.go_on(then, Outcome::Done) {
                return Ok(Some(ended));
            }
            self.take_held()?;
        }
        match &mut self.state {
            State::Sending(sending) => {
                sending.advance(port).map_err(|breach| (sending.process, breach))?;
                Ok(sending.is_over().then_some(Ok(Outcome::Done)))
            }
            State::Receiving(receiving) => {
                receiving.advance(self.key, self.header, port, slots, outbox);
                Ok(receiving.ended())
            }
            State::Agreeing { .. } | State::Flowing(_) | State::Probing(_) | State::Over => Ok(None),
        }
    }

    /// A frame of the data of a collective; its signature tells of which part.
    pub(crate) fn data(&mut self, from: Rank, header: &FrameHeader, payload: &[u8]) -> Result<(), Breach> {
        let most = self.most_held();
        let is_of_this = header.signature == self.header.signature;
        match &mut self.state {
            State::Flowing(flow) if is_of_this => match header.kind {
                FrameKind::Eager => flow.deliver(from, header.tag, payload),
                FrameKind::Credit => flow.credit(from, header.tag, header.offset),
                _ => match Opening::decode(payload) {
                    Some(opening) => flow.open(from, header, opening),
                    None => Err(Breach("its region key is cut off")),
                },
            },
            // The peer has heard everybody, this rank not yet.
            State::Agreeing { .. } | State::Flowing(_) if self.held.len() < most => {
                self.held.push((from, *header, payload.to_vec()));
                Ok(())
            }
            _ => Err(Breach("it sent data to a call that takes none")),
        }
    }

    /// How many frames there can be of parts that this rank has still to come to: a peer has at most its steps to send.
    fn most_held(&self) -> usize {
        let ranks = self.members.len();
        let of_first = match &self.state {
            State::Agreeing { job: Some(job), .. } => job.plan.len() * ranks,
            _ => 0,
        };
        // Of the parts to come no plan is known yet; none has more than so many frames for one rank.
        let to_come = self.then.as_ref().map_or(0, |then| then.parts);
        of_first + to_come * ranks * ranks.max(4)
    }

    /// Goes on with what was held back, as far as its time has come.
    fn take_held(&mut self) -> Result<(), (Process, Breach)> {
        for (rank, header, payload) in std::mem::take(&mut self.held) {
            self.data(rank, &header, &payload).map_err(|breach| (self.members[rank], breach))?;
        }
        Ok(())
    }

    /// Ends the transfers, wherever they stand.
    pub(crate) fn close(&mut self, port: &mut dyn Port, slots: &mut Slots) -> Option<Letter> {
        match &mut self.state {
            State::Agreeing { .. } | State::Probing(_) | State::Over => None,
            State::Flowing(flow) => {
                flow.close(port, slots);
                None
            }
            State::Sending(sending) => {
                sending.close(self.key, port).map(|header| Letter::new(sending.process, header, &[]))
            }
            State::Receiving(receiving) => receiving.close(self.header, port, slots),
        }
    }

    pub(crate) fn agreement(&mut self) -> Option<&mut Agreement> {
        if let State::Agreeing { agreement, .. } = &mut self.state { Some(agreement) } else { None }
    }

    pub(crate) fn sending(&mut self) -> Option<&mut Sending> {
        if let State::Sending(sending) = &mut self.state { Some(sending) } else { None }
    }

    pub(crate) fn receiving(&mut self) -> Option<&mut Receiving> {
        if let State::Receiving(receiving) = &mut self.state { Some(receiving) } else { None }
    }

    pub(crate) fn probing(&self) -> Option<Probing> {
        if let State::Probing(probing) = &self.state { Some(*probing) } else { None }
    }

    pub(crate) fn notified(&mut self, owner: Owner, peer: Process, segment: u16) {
        match &mut self.state {
            State::Flowing(flow) => flow.notified(owner, peer, segment),
            State::Receiving(receiving) => receiving.notified(peer, segment),
            _ => {}
        }
    }

    pub(crate) fn put_done(&mut self, step: u32, port: &mut dyn Port) {
        match &mut self.state {
            State::Flowing(flow) => flow.put_done(step, port),
            State::Sending(sending) => sending.put_done(port),
            _ => {}
        }
    }

    /// All signatures are known: goes on to the data, or ends.
    fn agreed(&mut self) -> Ended {
        let State::Agreeing { agreement, job } = &mut self.state else { return None };
        if let Some(table) = agreement.mismatch() {
            return Some(Err(mismatch(table, self.number)));
        }
        if let Some(job) = job.take() {
            self.state = State::Flowing(Flow::new(self.key, job, self.members.clone()));
            return None;
        }
        let State::Agreeing { agreement, .. } = std::mem::replace(&mut self.state, State::Over) else {
            return None;
        };
        let gathered = Outcome::Gathered(agreement.into_gathered());
        match self.then.take() {
            Some(then) => self.go_on(then, gathered),
            None => Some(Ok(gathered)),
        }
    }

    /// A part has ended: goes on to the next, or ends.
    fn go_on(&mut self, then: Then, outcome: Outcome) -> Ended {
        match (then.make)(outcome) {
            Ok(Part { signature, job, then }) => {
                self.begin.signature = signature;
                self.header.signature = signature.hash();
                self.state = State::Flowing(Flow::new(self.key, job, self.members.clone()));
                self.then = then;
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// A call on messages, for messages.
fn message_call(name: &str, tag: Option<u32>) -> Call {
    let arguments = tag.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
    Call { name: name.into(), arguments: arguments.into(), sequence: 0, communicator: None }
}

/// The error that all ranks get alike.
pub(crate) fn mismatch(table: &MismatchTable, number: u64) -> Error {
    let calls = table.calls();
    let calls = calls.into_iter().map(|(signature, ranks)| {
        (call(&signature, number), ranks.into_iter().map(|rank| rank as Rank).collect())
    });
    Error::Mismatch { calls: calls.collect(), field: None }
}

/// A call, as messages name it. `number`: as users count.
pub(crate) fn call(signature: &CallSignature, number: u64) -> Call {
    Call {
        name: signature.collective.name().into(),
        arguments: signature.describe().to_string().into(),
        sequence: number,
        communicator: None,
    }
}
