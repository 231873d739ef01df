//! What all collectives have in common: the signature, the choice of the path, and the wait.

use super::Communicator;
use super::memory::check_length;
use crate::buffer::{Reducer, Span, lend};
use crate::direct::{self, Operands};
use crate::engine::{self, Begin, Contribution, GroupId, Job, Outcome, Work};
use crate::plan::{self, Blocks, Determinism, Shape};
use crate::select::Selector;
use crate::{Error, Rank, Result};
use gradwire_schema::{CallSignature, Equivalence, LayoutDigest, MismatchTable, Properties};
use std::cell::OnceCell;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Where a signature's bucket carries the determinism: buckets are numbered from 1, and never come so far.
const DETERMINISM_SHIFT: u32 = 56;

/// Bytes from which a tensor among others is reduced where it lies; shorter ones of a kind travel together.
pub(super) const IN_PLACE: usize = 64 << 10;

/// A reduction in the terms of plans and executors.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) reducer: Reducer,
    pub(crate) properties: Properties,
    /// Neither the order nor the grouping of the contributions shows in its results.
    pub(crate) exact: bool,
}

/// A collective on bytes: what is to be done, for whatever executor does it.
#[derive(Clone, Debug)]
pub(crate) struct Collective {
    pub(crate) signature: CallSignature,
    pub(crate) shape: Shape,
    pub(crate) operation: Option<Operation>,
}

/// A call that was counted, and has not begun in the engine.
#[derive(Debug)]
pub(crate) struct Counted {
    group: GroupId,
    pub(crate) sequence: u64,
    pub(crate) signature: CallSignature,
    /// When somebody first asked: where all ranks come at once nobody does, and reading the clock would be a good part of
    /// the call.
    started: OnceCell<Instant>,
    timeout: Option<Duration>,
}

impl Counted {
    /// The call as the engine knows it.
    pub(crate) fn begin(&self) -> Begin {
        Begin {
            group: self.group,
            sequence: self.sequence,
            signature: self.signature,
            started: *self.started.get_or_init(Instant::now),
            timeout: self.timeout,
        }
    }

    /// When the call has taken too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timeout.and_then(|timeout| self.started.get_or_init(Instant::now).checked_add(timeout))
    }
}

impl Collective {
    /// As the executor for shared memory knows it.
    pub(super) fn direct<'a>(&'a self, counted: &'a Counted) -> direct::Call<'a> {
        direct::Call { counted, shape: &self.shape, reducer: self.reducer() }
    }

    fn reducer(&self) -> Option<&Reducer> {
        self.operation.as_ref().map(|operation| &operation.reducer)
    }

    /// The same collective on as many elements; `count` as [`Shape`] has it.
    pub(super) fn with_count(self, count: usize) -> Result<Self> {
        let signature = CallSignature { count: count as u64, ..self.signature };
        let shape = Shape { count, ..self.shape };
        let counted = Self { signature, shape, ..self };
        counted.check_fits()?;
        Ok(counted)
    }

    /// Whether a vector of the count's length can be.
    pub(super) fn check_fits(&self) -> Result<()> {
        if fits_in_memory(&self.shape) {
            return Ok(());
        }
        let count = self.shape.count;
        Err(misuse(format!("{count} elements of each rank are more than an address space holds")))
    }

    /// The same collective of `T` on blocks of these lengths: one for each rank, or in all_to_all one for each pair of ranks.
    pub(super) fn with_blocks<T: Equivalence>(self, counts: &[usize]) -> Result<Self> {
        let Self { signature, shape, operation } = self;
        let blocks = match shape.collective {
            plan::Collective::AllToAll => Blocks::exchange(shape.ranks, counts),
            _ => Blocks::new(counts),
        };
        let shape = Shape { blocks, ..shape };
        if shape.blocks.is_none() || !fits_in_memory(&shape) {
            return Err(misuse("the counts together are more than an address space holds".to_owned()));
        }
        let digest = counts
            .iter()
            .fold(LayoutDigest::new(T::FINGERPRINT), |digest, count| digest.length(*count as u64));
        let signature = CallSignature { layout: digest.finish(), count: shape.len() as u64, ..signature };
        Ok(Self { signature, shape, operation })
    }

    /// What the engine does, on a rank's working vector.
    pub(super) fn job(&self, selector: &Selector, rank: Rank, working: Span) -> Job {
        Job { plan: selector.plan(&self.shape, rank), working, reducer: self.reducer().cloned() }
    }

    /// That a buffer is the whole working vector.
    pub(crate) fn check_whole(&self, elements: usize) -> Result<()> {
        check_length("buffer", self.shape.len(), elements)
    }

    /// The part of the working vector, in bytes, that a rank holds at the start.
    pub(super) fn input(&self, rank: Rank) -> Range<usize> {
        self.shape.byte_range(&self.shape.input(rank))
    }

    /// The part of the working vector, in bytes, that a rank holds at the end.
    pub(super) fn result(&self, rank: Rank) -> Range<usize> {
        self.shape.byte_range(&self.shape.result(rank))
    }

    /// Bytes of a rank's working vector.
    pub(super) fn len(&self, rank: Rank) -> usize {
        self.shape.byte_range(&(0..self.shape.len_of(rank))).end
    }

    /// Whether a rank's result is the whole working vector.
    pub(super) fn results_in_all(&self, rank: Rank) -> bool {
        self.shape.result(rank) == self.shape.whole()
    }

    /// Makes a rank's result of what the engine has gathered, if it has: all contributions in rank order.
    pub(super) fn conclude(&self, outcome: Outcome, rank: Rank, working: Span) {
        let Outcome::Gathered(mut gathered) = outcome else { return };
        let part = self.result(rank);
        let Some(destination) = working.part(part.clone()).filter(|_| !part.is_empty()) else { return };
        match (self.reducer(), self.shape.collective) {
            (Some(reducer), _) => {
                // Of a scan, those of the ranks up to this one.
                let contributions = self.shape.contributions(rank).get() as usize;
                let contributed = gathered.len() / self.shape.ranks * contributions;
                reducer.fold_blocks(&mut gathered[..contributed], contributions, part, destination);
            }
            (None, plan::Collective::Scatter) => destination.write(&gathered[part]),
            (None, plan::Collective::AllToAll) => self.pick(&gathered, rank, working),
            (None, _) => destination.write(&gathered),
        }
    }

    /// Of what all ranks have for all, what is meant for this one.
    fn pick(&self, gathered: &[u8], rank: Rank, working: Span) {
        let rows = gathered.chunks_exact(self.input(rank).len());
        for (from, row) in rows.enumerate() {
            let sent = self.shape.byte_range(&self.shape.outgoing(from, rank));
            let place = self.shape.byte_range(&self.shape.incoming(rank, from));
            working.part(place).inspect(|place| place.write(&row[sent]));
        }
    }
}

/// Whether the bytes of a working vector can be counted.
fn fits_in_memory(shape: &Shape) -> bool {
    shape.len().checked_mul(shape.element_size).is_some_and(|bytes| bytes <= isize::MAX as usize)
}

impl Communicator {
    /// The root of a call, if there is such a rank.
    pub(super) fn check_root(&self, root: Rank) -> Result<()> {
        let size = self.size();
        if root < size {
            Ok(())
        } else {
            Err(misuse(format!("there is no rank {root}: ranks are below {size}")))
        }
    }

    /// Whether the promised determinism can be kept with an operation.
    #[inline]
    pub(super) fn check_determinism(&self, name: &str, exact: bool) -> Result<()> {
        if exact || self.determinism.get() < Determinism::Contributions {
            return Ok(());
        }
        Err(misuse(format!(
            "the results of {name} depend on how contributions are spread over the ranks, which `Determinism::Contributions` \
             rules out: use `ReproducibleSum` or `ReproducibleAverage`"
        )))
    }

    /// Counts a call.
    #[inline]
    pub(crate) fn count(&self, mut signature: CallSignature) -> Counted {
        // Ranks that ask for different determinism would choose different algorithms.
        signature.bucket |= (self.determinism.get() as u64) << DETERMINISM_SHIFT;
        Counted { sequence: self.calls.next(), ..self.uncounted(signature) }
    }

    /// As [`count`](Self::count), for what is no call of all ranks.
    #[inline]
    pub(crate) fn uncounted(&self, signature: CallSignature) -> Counted {
        Counted {
            group: self.id,
            sequence: self.calls(),
            signature,
            started: OnceCell::new(),
            timeout: self.timeout.get(),
        }
    }

    /// Counts a call and gives it its start.
    pub(crate) fn begin(&self, signature: CallSignature) -> Begin {
        self.count(signature).begin()
    }

    /// Carries out a collective on the working vector: in shared memory where all members share it, else in the
    /// engine.
    pub(super) fn collect(&self, collective: &Collective, working: &mut [u8]) -> Result<()> {
        self.collect_counted(collective, &self.count(collective.signature), working)
    }

    /// As [`collect`](Self::collect), where the call was counted before.
    pub(super) fn collect_counted(
        &self,
        collective: &Collective,
        counted: &Counted,
        working: &mut [u8],
    ) -> Result<()> {
        if let Some(result) = self.run_direct(&collective.direct(counted), Operands::Working(working)) {
            return result;
        }
        let work = |working| self.work(collective, working);
        lend(self.job.shared(), counted.begin(), working, work, |outcome, working| {
            collective.conclude(outcome, self.rank, working);
        })
    }

    /// Carries out a collective in shared memory from a source into a destination elsewhere; `None`, and nothing has happened,
    /// where that cannot be: then it takes a working vector.
    pub(super) fn collect_apart(
        &self,
        collective: &Collective,
        counted: &Counted,
        source: &[u8],
        destination: &mut [u8],
    ) -> Option<Result<()>> {
        if !direct::Call::works_apart(collective.shape.collective) {
            return None;
        }
        self.run_direct(&collective.direct(counted), Operands::Apart(source, destination))
    }

    /// What the engine has to do for a collective. Small data travel with the signatures.
    pub(crate) fn work(&self, collective: &Collective, working: Span) -> Work {
        if let Some(contribution) = self.small_contribution(&collective.shape) {
            let mut own = Vec::new();
            working.part(collective.input(self.rank)).inspect(|part| part.append_to(&mut own));
            return Work::Exchange { own, contribution };
        }
        Work::Planned(collective.job(self.job.selector(), self.rank, working))
    }
}

impl Communicator {
    /// What the ranks contribute to a collective, if it is small.
    fn small_contribution(&self, shape: &Shape) -> Option<Contribution> {
        let bytes = |rank| shape.byte_range(&shape.input(rank)).len();
        let (contribution, most) = match (shape.collective, &shape.blocks) {
            (plan::Collective::AllGather | plan::Collective::Gather, Some(blocks)) => {
                (Contribution::Blocks(blocks.clone(), shape.element_size), shape.longest_block())
            }
            // Its input may be another length on every rank.
            (plan::Collective::AllToAll, Some(_)) => return None,
            (plan::Collective::Broadcast | plan::Collective::Scatter, _) => {
                (Contribution::Only(shape.root, bytes(shape.root)), bytes(shape.root))
            }
            _ => (Contribution::Each(bytes(shape.root)), bytes(shape.root)),
        };
        Some(contribution).filter(|_| self.size() > 1 && most <= small_limit(self.size()))
    }
}

/// Bytes up to which contributions travel with the signatures: what one more round would cost is less than a round
/// trip. A function of the number of ranks alone, so that all ranks choose alike.
pub(super) fn small_limit(ranks: usize) -> usize {
    match ranks {
        0..=2 => 8 << 10,
        3..=8 => 1 << 10,
        _ => (16 << 10) / ranks.next_power_of_two(),
    }
}

/// The error that all ranks get alike, from the calls of all of them.
pub(crate) fn mismatch(calls: &[Option<CallSignature>], number: u64) -> Error {
    let mut table: Option<MismatchTable> = None;
    for (rank, signature) in (0..).zip(calls) {
        let Some(signature) = signature else { continue };
        let entry = MismatchTable::new(rank, *signature);
        match &mut table {
            // Distinct ranks: nothing can contradict.
            Some(table) => _ = table.merge(&entry),
            None => table = Some(entry),
        }
    }
    engine::mismatch(&table.unwrap_or_default(), number)
}

pub(super) fn misuse(text: String) -> Error {
    Error::Misuse(text.into())
}
