//! Reducing vectors of which each rank has a few elements.

use super::call::{Collective, misuse};
use super::memory::{pack, unpack_all};
use super::{Communicator, Telling};
use crate::{Result, plan};
use gradwire_schema::{CallSignature, Equivalence, Reduction};

/// Some elements of a long vector.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sparse<T> {
    /// Where they are: ascending, each once.
    pub indices: Vec<usize>,
    /// What is there: for each index equally many values, one behind the other.
    pub values: Vec<T>,
}

/// How much a rank has.
#[derive(Clone, Copy)]
struct Told {
    indices: usize,
    values: usize,
    /// The highest index, and 1; 0 where there is none.
    end: usize,
}

impl Communicator {
    /// Reduces a vector of `length` elements of which each rank has those at `indices`; every rank gets all elements that
    /// some rank has. As if all others were zero, an average is over all ranks.
    ///
    /// `values` holds the element at each index: one value, or a row of as many values everywhere (the gradient of an
    /// embedding), one row behind the other. An index may be there several times: those are reduced, too. Contributions are
    /// folded in rank order, and in the order in which a rank has them.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) on all ranks when some rank has an index that is not below `length`, values that
    /// are no whole number of rows, or longer rows than another; and those of every collective.
    pub fn sparse_all_reduce<T: Equivalence, R: Reduction<T>>(
        &self,
        length: usize,
        indices: &[usize],
        values: &[T],
        reduction: R,
    ) -> Result<Sparse<T>> {
        let (call, own) = self.telling_sparse::<T, R>(length, indices, values, &reduction)?;
        let (call, all) = self.call_telling(call, &own)?;
        fold(&call, length, &all, &reduction)
    }

    /// The call, on bytes, and what this rank has: each index followed by its row.
    pub(crate) fn telling_sparse<T: Equivalence, R: Reduction<T>>(
        &self,
        length: usize,
        indices: &[usize],
        values: &[T],
        reduction: &R,
    ) -> Result<(Telling, Vec<u8>)> {
        self.check_determinism(reduction.properties().name, reduction.is_exact())?;
        let mut call = self.describe::<T>(plan::Collective::AllGather, 0, None, None)?;
        call.signature = CallSignature {
            collective: gradwire_schema::Collective::SparseAllReduce,
            operation: Some(reduction.properties().id),
            count: length as u64,
            ..call.signature
        };
        let end = indices.iter().max().map_or(0, |highest| highest.saturating_add(1));
        let numbers = [indices.len() as u64, values.len() as u64, end as u64];
        let telling = self.telling::<T>(call.signature, &numbers, move |told| {
            let told: Vec<Told> = told
                .as_chunks()
                .0
                .iter()
                .map(|[indices, values, end]| Told { indices: *indices, values: *values, end: *end })
                .collect();
            let row = width(length, &told)?.saturating_mul(T::PACKED_SIZE);
            // An element is an index with its row.
            call.shape.element_size = row.saturating_add(size_of::<u64>());
            let counts: Vec<usize> = told.iter().map(|told| told.indices).collect();
            let call = call.with_blocks::<T>(&counts)?;
            Ok(Collective { signature: CallSignature { count: length as u64, ..call.signature }, ..call })
        });
        let rows = pack(values);
        // Where that is no whole number all ranks are told so, and nothing is sent.
        let row = rows.len().checked_div(indices.len()).unwrap_or(0);
        let mut own = Vec::with_capacity(indices.len() * (size_of::<u64>() + row));
        for (number, index) in indices.iter().enumerate() {
            own.extend_from_slice(&(*index as u64).to_le_bytes());
            own.extend_from_slice(&rows[number * row..(number + 1) * row]);
        }
        Ok((telling, own))
    }
}

/// Reduces what all ranks have: entries of an index and a row.
pub(crate) fn fold<T: Equivalence, R: Reduction<T>>(
    call: &Collective,
    length: usize,
    all: &[u8],
    reduction: &R,
) -> Result<Sparse<T>> {
    let entry = call.shape.element_size;
    let width = (entry - size_of::<u64>()) / T::PACKED_SIZE;
    let (mut entries, mut rows) = (Vec::new(), Vec::new());
    for (place, entry) in all.chunks_exact(entry).enumerate() {
        let Some((index, row)) = entry.split_first_chunk() else { continue };
        entries.push((usize::try_from(u64::from_le_bytes(*index)).unwrap_or(usize::MAX), place));
        rows.extend_from_slice(row);
    }
    let values: Vec<T> = unpack_all(&rows)?;
    // By index; those of one index stay in rank order.
    entries.sort_unstable();
    if entries.last().is_some_and(|(index, _)| *index >= length) {
        return Err(misuse(format!("a rank sent another index than it told: it is not below {length}")));
    }
    let mut sum = Sparse { indices: Vec::new(), values: Vec::new() };
    let mut accumulators = vec![R::Accumulator::default(); width];
    for group in entries.chunk_by(|(one, _), (other, _)| one == other) {
        let mut rows = group.iter().map(|(_, place)| &values[place * width..(place + 1) * width]);
        let Some(first) = rows.next() else { continue };
        reduction.lift(first, &mut accumulators);
        rows.for_each(|row| reduction.combine(&mut accumulators, row));
        let start = sum.values.len();
        sum.indices.push(group[0].0);
        sum.values.extend_from_slice(first);
        reduction.finish(&accumulators, call.shape.ranks as u64, &mut sum.values[start..]);
    }
    Ok(sum)
}

/// How many values an element has; every rank finds the same, or the same mistake.
fn width(length: usize, told: &[Told]) -> Result<usize> {
    let mut width = None;
    for (rank, told) in told.iter().enumerate() {
        let Told { indices, values, end } = *told;
        if end > length {
            return Err(misuse(format!(
                "rank {rank} has index {}, which is not below the length of {length}",
                end - 1
            )));
        }
        if indices == 0 && values == 0 {
            continue;
        }
        if indices == 0 || values == 0 || !values.is_multiple_of(indices) {
            return Err(misuse(format!(
                "rank {rank} has {values} values for {indices} indices: pass a whole number of values for each index"
            )));
        }
        match width {
            None => width = Some((rank, values / indices)),
            Some((other, width)) if width != values / indices => {
                return Err(misuse(format!(
                    "rank {rank} has {} values for each index, and rank {other} has {width}: pass as many",
                    values / indices
                )));
            }
            Some(_) => {}
        }
    }
    Ok(width.map_or(0, |(_, width)| width))
}
