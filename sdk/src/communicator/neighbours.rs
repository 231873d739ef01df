//! Exchanges between pairs of ranks: of any lengths, with all ranks or with a few neighbours.

use super::Communicator;
use super::call::{Collective, misuse};
use super::memory::{pack, unpack_all};
use super::per_rank::PerRank;
use super::varying::unfit;
use crate::{Error, Rank, Result, plan};
use gradwire_schema::{CallSignature, Equivalence};

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
        let size = self.size();
        let mut own = vec![u64::from(self.fits(counts, source.len()))];
        own.extend((0..size).map(|rank| counts.get(rank).map_or(0, |count| *count as u64)));
        let told = self.tell::<T>(plan::Collective::AllToAll, None, &own)?;
        let rows = || told.chunks_exact(own.len());
        if let Some(rank) = rows().position(|row| row[0] == 0) {
            return Err(unfit(rank));
        }
        let counts: Vec<usize> = rows().flat_map(|row| &row[1..]).copied().collect();
        let call = self.describe_blocks::<T>(plan::Collective::AllToAll, &counts, None, None)?;
        let received = counts.into_iter().skip(self.rank).step_by(size).collect();
        Ok(PerRank::new(self.call_owned(&call, source)?, received))
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
        let fits = self.fits(source_counts, source.len()) && self.fits(destination_counts, destination.len());
        let own =
            fits.then(|| Expectation { sent: source_counts.to_vec(), received: destination_counts.to_vec() });
        let call = self.agree_on_exchange::<T>(gradwire_schema::Collective::AllToAll, own, unfit)?;
        self.call_into(&call, source, destination)
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
        let lengths_sent = self.lengths(sent.iter().map(|(rank, values)| (*rank, values.len())));
        let lengths_received = self.lengths(received.iter().map(|(rank, values)| (*rank, values.len())));
        let own = lengths_sent.zip(lengths_received).map(|(sent, received)| Expectation { sent, received });
        let twice = |rank| {
            misuse(format!(
                "rank {rank} names a neighbour twice, or one that does not exist: name each once, below {}",
                self.size()
            ))
        };
        let call = self.agree_on_exchange::<T>(gradwire_schema::Collective::NeighbourExchange, own, twice)?;
        let mut in_order: Vec<_> = sent.iter().collect();
        in_order.sort_by_key(|(rank, _)| *rank);
        let own: Vec<u8> = in_order.into_iter().flat_map(|(_, values)| pack(values)).collect();
        let working = self.call_packed(&call, &own)?;
        let all: Vec<T> = unpack_all(&working[call.result(self.rank)])?;
        let start = call.shape.result(self.rank).start;
        for (rank, values) in received {
            let block = call.shape.incoming(self.rank, *rank);
            values.copy_from_slice(&all[block.start - start..block.end - start]);
        }
        Ok(())
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

    /// Lets the ranks tell each other what they send and expect: the call that does it, if all fits. `own`: `None` where
    /// this rank's alone does not; `fault` is what all ranks say then.
    fn agree_on_exchange<T: Equivalence>(
        &self,
        collective: gradwire_schema::Collective,
        own: Option<Expectation>,
        fault: impl FnOnce(Rank) -> Error,
    ) -> Result<Collective> {
        let size = self.size();
        let mut words = vec![u64::from(own.is_some())];
        match own {
            Some(Expectation { sent, received }) => {
                words.extend(sent.iter().chain(&received).map(|count| *count as u64));
            }
            None => words.resize(1 + 2 * size, 0),
        }
        let base = self.describe::<T>(plan::Collective::AllToAll, 0, None, None)?.signature;
        let told = self.tell_numbers::<T>(CallSignature { collective, ..base }, &words)?;
        let rows: Vec<&[usize]> = told.chunks_exact(words.len()).collect();
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
        let mut call = self.describe_blocks::<T>(plan::Collective::AllToAll, &counts, None, None)?;
        call.signature.collective = collective;
        Ok(call)
    }
}
