//! Exchanges between pairs of ranks: of any lengths, with all ranks or with a few neighbours.

use super::call::{Collective, misuse};
use super::varying::unfit;
use super::{Communicator, PerRank, Telling};
use crate::{Error, Rank, Result, plan};
use gradwire_schema::Equivalence;
use std::ops::Range;

/// How much a rank sends to each rank, and expects of each.
struct Expectation {
    sent: Vec<usize>,
    received: Vec<usize>,
}

impl Communicator {
    /// As [`all_to_all`](Self::all_to_all), with blocks of any lengths: the first `counts[0]` elements of `source` go to rank
    /// 0, the next `counts[1]` to rank 1.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) on all ranks when some rank's counts are not one for each rank, or not as many together as
    /// its source is long; and those of every collective.
    pub fn all_to_all_varying<T: Equivalence>(&self, source: &[T], counts: &[usize]) -> Result<PerRank<T>> {
        let call = self.telling_all_to_all::<T>(source.len(), counts)?;
        let (call, values) = self.call_telling(call, source)?;
        Ok(call.per_rank(self.rank, values))
    }

    /// As [`all_to_all_varying`](Self::all_to_all_varying), where every rank knows how much comes from each:
    /// `destination_counts[r]` elements from rank `r`, as many as that rank has for this one.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) on all ranks when some rank's counts do not fit its buffers, or those of another rank;
    /// and those of every collective.
    pub fn all_to_all_varying_into<T: Equivalence>(
        &self,
        source: &[T],
        source_counts: &[usize],
        destination: &mut [T],
        destination_counts: &[usize],
    ) -> Result<()> {
        let (sent, received) = ((source.len(), source_counts), (destination.len(), destination_counts));
        let call = self.telling_all_to_all_into::<T>(sent, received)?;
        self.call_telling_into(call, source, destination).map(drop)
    }

    /// Sends a slice to each of some ranks and receives one from each of some ranks. Every rank of the communicator
    /// calls it, and names its own neighbours, itself if it likes: each at most once in `sent` and once in `received`, in
    /// any order. Whoever sends to a rank is named there with as many elements; an empty slice is as good as none.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) on all ranks when some rank names a neighbour twice or one that does not exist, or when
    /// two neighbours do not expect the same; and those of every collective.
    pub fn neighbour_exchange<T: Equivalence>(
        &self,
        sent: &[(Rank, &[T])],
        received: &mut [(Rank, &mut [T])],
    ) -> Result<()> {
        let lengths = received.iter().map(|(rank, values)| (*rank, values.len()));
        let (call, source) = self.telling_neighbours(sent, lengths)?;
        let (call, all) = self.call_telling(call, &source)?;
        for (rank, values) in received {
            values.copy_from_slice(&all[call.part_of_neighbour(self.rank, *rank)]);
        }
        Ok(())
    }
}

/// What the calls are, for whichever form of call carries them out.
impl Communicator {
    pub(crate) fn telling_all_to_all<T: Equivalence>(&self, len: usize, counts: &[usize]) -> Result<Telling> {
        let call = self.describe::<T>(plan::Collective::AllToAll, 0, None, None)?;
        let own = self.checked_counts(counts, len);
        let numbers = own.len();
        Ok(self.telling::<T>(call.signature, &own, move |told| {
            let rows = || told.chunks_exact(numbers);
            if let Some(rank) = rows().position(|row| row[0] == 0) {
                return Err(unfit(rank));
            }
            let counts: Vec<usize> = rows().flat_map(|row| &row[1..]).copied().collect();
            call.with_blocks::<T>(&counts)
        }))
    }

    /// `sent` and `received`: the length of a buffer, and its counts.
    pub(crate) fn telling_all_to_all_into<T: Equivalence>(
        &self,
        sent: (usize, &[usize]),
        received: (usize, &[usize]),
    ) -> Result<Telling> {
        let fits = self.fits(sent.1, sent.0) && self.fits(received.1, received.0);
        let own = fits.then(|| Expectation { sent: sent.1.to_vec(), received: received.1.to_vec() });
        self.telling_exchange::<T>(gradwire_schema::Collective::AllToAll, own, unfit)
    }

    /// The call, and what is sent, by rank; `received`: for which ranks there is how much room.
    pub(crate) fn telling_neighbours<T: Equivalence>(
        &self,
        sent: &[(Rank, &[T])],
        received: impl Iterator<Item = (Rank, usize)>,
    ) -> Result<(Telling, Vec<T>)> {
        let lengths_sent = self.lengths(sent.iter().map(|(rank, values)| (*rank, values.len())));
        let own =
            lengths_sent.zip(self.lengths(received)).map(|(sent, received)| Expectation { sent, received });
        let size = self.size();
        let twice = move |rank| {
            misuse(format!(
                "rank {rank} names a neighbour twice, or one that does not exist: name each once, below {size}"
            ))
        };
        let call = self.telling_exchange::<T>(gradwire_schema::Collective::NeighbourExchange, own, twice)?;
        let mut in_order: Vec<_> = sent.iter().collect();
        in_order.sort_by_key(|(rank, _)| *rank);
        Ok((call, in_order.into_iter().flat_map(|(_, values)| *values).copied().collect()))
    }

    /// By rank, the lengths for some ranks; `None` when one of them is named twice or does not exist.
    fn lengths(&self, named: impl Iterator<Item = (Rank, usize)>) -> Option<Vec<usize>> {
        let mut lengths = vec![None; self.size()];
        for (rank, len) in named {
            if lengths.get_mut(rank)?.replace(len).is_some() {
                return None;
            }
        }
        Some(lengths.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Lets the ranks tell each other what they send and expect, then do it if all fits. `own`: `None` where this rank's
    /// alone does not; `fault` is what all ranks say then.
    fn telling_exchange<T: Equivalence>(
        &self,
        collective: gradwire_schema::Collective,
        own: Option<Expectation>,
        fault: impl FnOnce(Rank) -> Error + Send + 'static,
    ) -> Result<Telling> {
        let size = self.size();
        let mut words = vec![u64::from(own.is_some())];
        match own {
            Some(Expectation { sent, received }) => {
                words.extend(sent.iter().chain(&received).map(|count| *count as u64));
            }
            None => words.resize(1 + 2 * size, 0),
        }
        let mut call = self.describe::<T>(plan::Collective::AllToAll, 0, None, None)?;
        call.signature.collective = collective;
        let numbers = words.len();
        Ok(self.telling::<T>(call.signature, &words, move |told| {
            let rows: Vec<&[usize]> = told.chunks_exact(numbers).collect();
            if let Some(rank) = rows.iter().position(|row| row[0] == 0) {
                return Err(fault(rank));
            }
            for (from, row) in rows.iter().enumerate() {
                for (to, sent) in row[1..=size].iter().enumerate() {
                    let expected = rows[to][1 + size + from];
                    if *sent != expected {
                        return Err(misuse(format!(
                            "rank {from} sends {sent} elements to rank {to}, which expects {expected}"
                        )));
                    }
                }
            }
            let counts: Vec<usize> = rows.iter().flat_map(|row| &row[1..=size]).copied().collect();
            call.with_blocks::<T>(&counts)
        }))
    }
}

impl Collective {
    /// Where among all that has come for a rank a neighbour's is.
    pub(crate) fn part_of_neighbour(&self, rank: Rank, neighbour: Rank) -> Range<usize> {
        let start = self.shape.result(rank).start;
        let block = self.shape.incoming(rank, neighbour);
        block.start - start..block.end - start
    }
}
