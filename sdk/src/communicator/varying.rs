//! Collectives in which ranks have as many elements as they like.
//!
//! Where not every rank knows all counts they are calls in two parts: see `two_parts`.

use super::call::{Collective, Operation, misuse};
use super::{Communicator, PerRank, Telling};
use crate::{Rank, Result, plan};
use gradwire_schema::{Equivalence, Reduction};

/// What the calls are, for whichever form of call carries them out.
impl Communicator {
    pub(crate) fn all_gather_varying_call<T: Equivalence>(&self, counts: &[usize]) -> Result<Collective> {
        self.check_counts(counts)?;
        self.describe::<T>(plan::Collective::AllGather, 0, None, None)?.with_blocks::<T>(counts)
    }

    pub(crate) fn reduce_scatter_varying_call<T: Equivalence, R: Reduction<T>>(
        &self,
        counts: &[usize],
        reduction: &R,
    ) -> Result<Collective> {
        self.check_counts(counts)?;
        let operation = Some(Operation::new(reduction));
        self.describe::<T>(plan::Collective::ReduceScatter, 0, None, operation)?.with_blocks::<T>(counts)
    }

    pub(crate) fn telling_all_gather<T: Equivalence>(&self, len: usize) -> Result<Telling> {
        let call = self.describe::<T>(plan::Collective::AllGather, 0, None, None)?;
        Ok(self.telling::<T>(call.signature, &[len as u64], move |counts| call.with_blocks::<T>(counts)))
    }

    pub(crate) fn telling_gather<T: Equivalence>(&self, len: usize, root: Rank) -> Result<Telling> {
        let call = self.describe::<T>(plan::Collective::Gather, 0, Some(root), None)?;
        Ok(self.telling::<T>(call.signature, &[len as u64], move |counts| call.with_blocks::<T>(counts)))
    }

    /// `room`: elements of this rank's destination, which counts at the root.
    pub(crate) fn telling_gather_into<T: Equivalence>(
        &self,
        len: usize,
        room: usize,
        root: Rank,
    ) -> Result<Telling> {
        let call = self.describe::<T>(plan::Collective::Gather, 0, Some(root), None)?;
        let own = [len, if self.rank == root { room } else { 0 }].map(|number| number as u64);
        Ok(self.telling::<T>(call.signature, &own, move |told| {
            let counts: Vec<usize> = told.iter().copied().step_by(own.len()).collect();
            let (room, total) = (told[own.len() * root + 1], sum(&counts));
            if room != total {
                return Err(misuse(format!(
                    "the ranks have {total} elements together, and the destination of rank {root} has {room}: make it as long"
                )));
            }
            call.with_blocks::<T>(&counts)
        }))
    }

    /// `len` and `counts`: of this rank's source, which is used at the root.
    pub(crate) fn telling_scatter_varying<T: Equivalence>(
        &self,
        len: usize,
        counts: &[usize],
        root: Rank,
    ) -> Result<Telling> {
        let call = self.describe::<T>(plan::Collective::Scatter, 0, Some(root), None)?;
        let own = self.counts_of_root(len, counts, root);
        let numbers = own.len();
        Ok(self.telling::<T>(call.signature, &own, move |told| match &told[root * numbers..][..numbers] {
            [0, ..] => Err(unfit(root)),
            of_root => call.with_blocks::<T>(&of_root[1..]),
        }))
    }

    /// As [`telling_scatter_varying`](Self::telling_scatter_varying); `room`: elements of this rank's destination.
    pub(crate) fn telling_scatter_varying_into<T: Equivalence>(
        &self,
        len: usize,
        room: usize,
        counts: &[usize],
        root: Rank,
    ) -> Result<Telling> {
        let call = self.describe::<T>(plan::Collective::Scatter, 0, Some(root), None)?;
        let mut own = self.counts_of_root(len, counts, root);
        own.push(room as u64);
        let numbers = own.len();
        Ok(self.telling::<T>(call.signature, &own, move |told| {
            let counts = match &told[root * numbers..][..numbers - 1] {
                [0, ..] => return Err(unfit(root)),
                of_root => &of_root[1..],
            };
            let rooms = told.iter().skip(numbers - 1).step_by(numbers);
            for (rank, (count, room)) in counts.iter().zip(rooms).enumerate() {
                if count != room {
                    return Err(misuse(format!(
                        "rank {root} has {count} elements for rank {rank}, whose destination has {room}: make it as long"
                    )));
                }
            }
            call.with_blocks::<T>(counts)
        }))
    }

    /// At the root 1 and its counts, or 0 where they do not fit its source; elsewhere nothing that matters.
    fn counts_of_root(&self, len: usize, counts: &[usize], root: Rank) -> Vec<u64> {
        let counts = if self.rank == root { counts } else { &[] };
        self.checked_counts(counts, len)
    }

    /// 1 and the counts, one for each rank; 0 in front where they are not, or not `len` together.
    pub(super) fn checked_counts(&self, counts: &[usize], len: usize) -> Vec<u64> {
        let mut numbers = vec![u64::from(self.fits(counts, len))];
        numbers.extend((0..self.size()).map(|rank| counts.get(rank).map_or(0, |count| *count as u64)));
        numbers
    }

    /// The counts that all ranks have passed: one for each of them.
    fn check_counts(&self, counts: &[usize]) -> Result<()> {
        if counts.len() == self.size() {
            return Ok(());
        }
        Err(misuse(format!(
            "there are {} counts: pass one for each of the {} ranks",
            counts.len(),
            self.size()
        )))
    }
}

impl Communicator {
    /// Every rank gets the values of all ranks, in rank order, however many each has.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn all_gather_varying<T: Equivalence>(&self, source: &[T]) -> Result<PerRank<T>> {
        let (call, values) = self.call_telling(self.telling_all_gather::<T>(source.len())?, source)?;
        Ok(call.per_rank(self.rank, values))
    }

    /// As [`all_gather_varying`](Self::all_gather_varying), where every rank knows how many elements each rank has: all
    /// pass the same `counts`, and `destination` is as long as they are together.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the counts do not fit the buffers, and those of every collective.
    pub fn all_gather_varying_into<T: Equivalence>(
        &self,
        source: &[T],
        destination: &mut [T],
        counts: &[usize],
    ) -> Result<()> {
        self.call_into(&self.all_gather_varying_call::<T>(counts)?, source, destination)
    }

    /// `root` gets the values of all ranks, in rank order, however many each has; the others get `None`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, and those of every collective.
    pub fn gather_varying<T: Equivalence>(&self, source: &[T], root: Rank) -> Result<Option<PerRank<T>>> {
        let (call, values) = self.call_telling(self.telling_gather::<T>(source.len(), root)?, source)?;
        Ok(call.per_rank_at_root(self.rank, values))
    }

    /// As [`gather_varying`](Self::gather_varying), into the `destination` of `root`; elsewhere that is not used and may be
    /// empty. All ranks get to know how many elements each had.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) on all ranks when the destination is not as long as the sources of all ranks
    /// together; also when there is no such rank; and those of every collective.
    pub fn gather_varying_into<T: Equivalence>(
        &self,
        source: &[T],
        destination: &mut [T],
        root: Rank,
    ) -> Result<Vec<usize>> {
        let destination = if self.rank == root { destination } else { &mut [] };
        let call = self.telling_gather_into::<T>(source.len(), destination.len(), root)?;
        Ok(self.call_telling_into(call, source, destination)?.counts(self.rank))
    }

    /// Gives every rank its block of the values of `root`, in rank order: `counts[r]` of them to rank `r`. `source` and
    /// `counts` are used at the root only; elsewhere they may be empty.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) on all ranks when the root's counts are not one for each rank, or not as many
    /// together as its source is long; also when there is no such rank; and those of every collective.
    pub fn scatter_varying<T: Equivalence>(
        &self,
        source: &[T],
        counts: &[usize],
        root: Rank,
    ) -> Result<Vec<T>> {
        let source = if self.rank == root { source } else { &[] };
        let call = self.telling_scatter_varying::<T>(source.len(), counts, root)?;
        Ok(self.call_telling(call, source)?.1)
    }

    /// As [`scatter_varying`](Self::scatter_varying), into `destination`.
    ///
    /// # Errors
    ///
    /// Those of [`scatter_varying`](Self::scatter_varying), and [`Misuse`](crate::Error::Misuse) on all ranks when some
    /// rank's destination is not as long as the root's count for it.
    pub fn scatter_varying_into<T: Equivalence>(
        &self,
        source: &[T],
        destination: &mut [T],
        counts: &[usize],
        root: Rank,
    ) -> Result<()> {
        let source = if self.rank == root { source } else { &[] };
        let call = self.telling_scatter_varying_into::<T>(source.len(), destination.len(), counts, root)?;
        self.call_telling_into(call, source, destination).map(drop)
    }

    /// Reduces the values of all ranks, element by element, and gives each rank its part of the result: the first
    /// `counts[0]` elements to rank 0, the next `counts[1]` to rank 1. All ranks pass the same counts; `source` is as long
    /// as they are together.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the counts do not fit the buffers, and those of every collective.
    pub fn reduce_scatter_varying_into<T: Equivalence, R: Reduction<T>>(
        &self,
        source: &[T],
        destination: &mut [T],
        counts: &[usize],
        reduction: R,
    ) -> Result<()> {
        self.call_into(&self.reduce_scatter_varying_call(counts, &reduction)?, source, destination)
    }

    /// Whether counts are one for each rank, and together `len`.
    pub(super) fn fits(&self, counts: &[usize], len: usize) -> bool {
        counts.len() == self.size() && sum(counts) == len
    }
}

/// Counts together; the most there can be when they are more.
fn sum(counts: &[usize]) -> usize {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// The error that all ranks get when counts do not fit.
pub(super) fn unfit(rank: Rank) -> crate::Error {
    misuse(format!(
        "the counts that rank {rank} passed do not fit its buffers: pass one for each rank, together as many as there are \
         elements"
    ))
}
