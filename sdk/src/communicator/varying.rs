//! Collectives in which ranks have as many elements as they like.
//!
//! Where not every rank knows all counts they are told first, in a small collective of their own. Then all ranks check
//! them and find the same mistake, or none: no byte of the values has been sent by then.

use super::Communicator;
use super::call::{Collective, Operation, misuse};
use super::per_rank::PerRank;
use crate::plan::{self, Blocks, Shape};
use crate::{Rank, Result};
use gradwire_schema::{CallSignature, Equivalence, LayoutDigest, Reduction};

/// What the calls are, for whichever form of call carries them out.
impl Communicator {
    /// A collective on blocks of these lengths: one for each rank, or in all_to_all one for each pair of ranks.
    pub(super) fn describe_blocks<T: Equivalence>(
        &self,
        collective: plan::Collective,
        counts: &[usize],
        root: Option<Rank>,
        operation: Option<Operation>,
    ) -> Result<Collective> {
        let Collective { signature, shape, operation } =
            self.describe::<T>(collective, 0, root, operation)?;
        let blocks = match collective {
            plan::Collective::AllToAll => Blocks::exchange(self.size(), counts),
            _ => Blocks::new(counts),
        };
        let shape = Shape { blocks, ..shape };
        let bytes = shape.len().checked_mul(shape.element_size);
        if shape.blocks.is_none() || bytes.is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(misuse("the counts together are more than an address space holds".to_owned()));
        }
        let digest = counts
            .iter()
            .fold(LayoutDigest::new(T::FINGERPRINT), |digest, count| digest.length(*count as u64));
        let signature = CallSignature { layout: digest.finish(), count: shape.len() as u64, ..signature };
        Ok(Collective { signature, shape, operation })
    }

    pub(crate) fn all_gather_varying_call<T: Equivalence>(&self, counts: &[usize]) -> Result<Collective> {
        self.check_counts(counts)?;
        self.describe_blocks::<T>(plan::Collective::AllGather, counts, None, None)
    }

    pub(crate) fn reduce_scatter_varying_call<T: Equivalence, R: Reduction<T>>(
        &self,
        counts: &[usize],
        reduction: &R,
    ) -> Result<Collective> {
        self.check_counts(counts)?;
        let operation = Some(Operation::new(reduction));
        self.describe_blocks::<T>(plan::Collective::ReduceScatter, counts, None, operation)
    }

    /// Tells all ranks a few numbers of this one: those of all ranks, by rank. As many of each, or it is a mismatch.
    pub(super) fn tell<T: Equivalence>(
        &self,
        collective: plan::Collective,
        root: Option<Rank>,
        own: &[u64],
    ) -> Result<Vec<usize>> {
        let signature = self.describe::<T>(collective, 0, root, None)?.signature;
        self.tell_numbers::<T>(signature, own)
    }

    pub(super) fn tell_numbers<T: Equivalence>(
        &self,
        signature: CallSignature,
        own: &[u64],
    ) -> Result<Vec<usize>> {
        // Never that of a call that moves values.
        let layout = LayoutDigest::new(!T::FINGERPRINT).length(own.len() as u64).finish();
        let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
        let told = self.tell_all(CallSignature { layout, ..signature }, &bytes)?;
        let numbers = told.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        // What is too long for a count here fits no buffer either.
        Ok(numbers.map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect())
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
        let counts = self.tell::<T>(plan::Collective::AllGather, None, &[source.len() as u64])?;
        let call = self.describe_blocks::<T>(plan::Collective::AllGather, &counts, None, None)?;
        Ok(PerRank::new(self.call_owned(&call, source)?, counts))
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
        self.check_root(root)?;
        let counts = self.tell::<T>(plan::Collective::Gather, Some(root), &[source.len() as u64])?;
        let call = self.describe_blocks::<T>(plan::Collective::Gather, &counts, Some(root), None)?;
        let values = self.call_owned(&call, source)?;
        Ok((self.rank == root).then(|| PerRank::new(values, counts)))
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
        self.check_root(root)?;
        let destination = if self.rank == root { destination } else { &mut [] };
        let own = [source.len() as u64, destination.len() as u64];
        let told = self.tell::<T>(plan::Collective::Gather, Some(root), &own)?;
        let counts: Vec<usize> = told.iter().copied().step_by(2).collect();
        let (room, total) = (told[2 * root + 1], sum(&counts));
        if room != total {
            return Err(misuse(format!(
                "the ranks have {total} elements together, and the destination of rank {root} has {room}: make it as long"
            )));
        }
        let call = self.describe_blocks::<T>(plan::Collective::Gather, &counts, Some(root), None)?;
        self.call_into(&call, source, destination)?;
        Ok(counts)
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
        self.check_root(root)?;
        let (source, counts) = if self.rank == root { (source, counts) } else { (&[][..], &[][..]) };
        let mut own = vec![u64::from(self.fits(counts, source.len()))];
        own.extend((0..self.size()).map(|rank| counts.get(rank).map_or(0, |count| *count as u64)));
        let told = self.tell::<T>(plan::Collective::Scatter, Some(root), &own)?;
        let told = &told[root * own.len()..(root + 1) * own.len()];
        if told[0] == 0 {
            return Err(unfit(root));
        }
        let call = self.describe_blocks::<T>(plan::Collective::Scatter, &told[1..], Some(root), None)?;
        self.call_owned(&call, source)
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
        self.check_root(root)?;
        let (source, counts) = if self.rank == root { (source, counts) } else { (&[][..], &[][..]) };
        let mut own = vec![destination.len() as u64, u64::from(self.fits(counts, source.len()))];
        own.extend((0..self.size()).map(|rank| counts.get(rank).map_or(0, |count| *count as u64)));
        let told = self.tell::<T>(plan::Collective::Scatter, Some(root), &own)?;
        let of_root = &told[root * own.len()..(root + 1) * own.len()];
        if of_root[1] == 0 {
            return Err(unfit(root));
        }
        let counts = &of_root[2..];
        for (rank, (count, room)) in counts.iter().zip(told.iter().step_by(own.len())).enumerate() {
            if count != room {
                return Err(misuse(format!(
                    "rank {root} has {count} elements for rank {rank}, whose destination has {room}: make it as long"
                )));
            }
        }
        let call = self.describe_blocks::<T>(plan::Collective::Scatter, counts, Some(root), None)?;
        self.call_into(&call, source, destination)
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
