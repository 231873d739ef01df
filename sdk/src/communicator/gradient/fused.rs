//! Structs whose calls go on by themselves: all tensors in buckets, and one operation with a part for each bucket.
//!
//! Nothing of the struct is lent: a `Gradient` written by hand may show tensors that do not outlast the visit. So it may be
//! moved while the operation is under way. The ranks agree once, in the first part, whose signature tells of the whole
//! struct; the blocking forms make a call for each bucket, which is why the two do not meet.

use super::buckets::{Bucket, Gather, Scatter};
use super::{Way, layout_error};
use crate::buffer::{Private, Span};
use crate::communicator::Communicator;
use crate::communicator::call::Collective;
use crate::engine::{Begin, Job, Outcome, Part, Then, Work};
use crate::{Error, Rank, Result};
use gradwire_schema::layout::Checked;
use gradwire_schema::{CallSignature, Gradient};
use std::collections::VecDeque;

/// The tensors of a struct while its call is under way.
pub(crate) struct Fused {
    way: Way,
    rank: Rank,
    first: Collective,
    buckets: Vec<Bucket>,
    /// What is in the buckets, in their order.
    memory: Vec<Private>,
}

impl Communicator {
    /// The call on a struct: its start, and what is to be concluded. `spare`: memory for buckets.
    pub(crate) fn start_struct<G: Gradient>(
        &self,
        gradient: &mut G,
        way: Way,
        spare: Vec<Vec<u8>>,
    ) -> Result<(Begin, Work, Fused)> {
        way.root().map_or(Ok(()), |root| self.check_root(root))?;
        let base = self.describe_struct(gradient, way, way.started())?;
        let gather = Gather { communicator: self, way, in_place: None, base, buckets: Vec::new(), spare };
        let mut gather = Checked::new(G::LAYOUT, gather);
        gradient.visit(&mut gather).map_err(layout_error)?;
        let mut buckets = gather.into_inner().buckets;
        let mut memory: Vec<Private> =
            buckets.iter_mut().map(|bucket| std::mem::take(&mut bucket.bytes).into()).collect();
        let mut parts: VecDeque<(Collective, Span)> = VecDeque::with_capacity(buckets.len());
        for ((bucket, memory), number) in buckets.iter().zip(&mut memory).zip(1..) {
            let signature = CallSignature { bucket: number, ..base };
            let count = memory.len() / bucket.element_size;
            let call = self.struct_call(signature, way, count, bucket.element_size, Some(&bucket.operation));
            parts.push_back((call, memory.span()));
        }
        // A struct without a tensor still agrees.
        let nothing = || (self.struct_call(base, way, 0, 1, None), Span::EMPTY);
        let (first, span) = parts.pop_front().unwrap_or_else(nothing);
        let (rank, selector) = (self.rank, self.job.selector());
        let jobs: VecDeque<(CallSignature, Job)> =
            parts.into_iter().map(|(call, span)| (call.signature, call.job(selector, rank, span))).collect();
        let begin = self.begin(first.signature);
        let mut work = self.work(&first, span);
        if !jobs.is_empty() {
            let first = first.clone();
            let then = Then::new(jobs.len(), move |outcome| {
                first.conclude(outcome, rank, span);
                next(jobs)
            });
            work = Work::InParts(Box::new(work), then);
        }
        Ok((begin, work, Fused { way, rank, first, buckets, memory }))
    }
}

/// The first of the parts that are left.
fn next(mut jobs: VecDeque<(CallSignature, Job)>) -> Result<Part> {
    let Some((signature, job)) = jobs.pop_front() else {
        return Err(Error::Bug("a struct has fewer parts than it said".into()));
    };
    let then = if jobs.is_empty() { None } else { Some(Then::new(jobs.len(), move |_| next(jobs))) };
    Ok(Part { signature, job, then })
}

impl Fused {
    /// Gives the struct its results.
    pub(crate) fn conclude<G: Gradient>(&mut self, gradient: &mut G, outcome: Result<Outcome>) -> Result<()> {
        let outcome = outcome?;
        if let Some(memory) = self.memory.first_mut() {
            // Of several parts the engine has concluded the first itself.
            self.first.conclude(outcome, self.rank, memory.span());
        }
        for (bucket, memory) in self.buckets.iter_mut().zip(self.memory.drain(..)) {
            bucket.bytes = memory.into();
        }
        if matches!(self.way, Way::Reduce(root) if root != self.rank) {
            return Ok(());
        }
        let scatter = Scatter { way: self.way, in_place: false, buckets: &mut self.buckets };
        gradient.visit(&mut Checked::new(G::LAYOUT, scatter)).map_err(layout_error)
    }

    /// The memory of the buckets, for the next call.
    pub(crate) fn into_spare(self) -> Vec<Vec<u8>> {
        let left = self.memory.into_iter().map(Vec::from);
        left.chain(self.buckets.into_iter().map(|bucket| bucket.bytes)).collect()
    }
}
