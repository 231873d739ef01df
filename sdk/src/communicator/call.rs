//! What all collectives have in common: the signature, the choice of the path, and the wait.

use super::Communicator;
use crate::buffer::{Private, Reducer, Span, lend};
use crate::direct;
use crate::engine::{self, Begin, Contribution, Job, Outcome, Work};
use crate::plan::{self, Plan, Shape};
use crate::{Error, Rank, Result};
use gradwire_schema::{CallSignature, Equivalence, InvalidValue, MismatchTable, Properties};
use std::num::NonZeroU64;
use std::time::Instant;

/// Where a signature's bucket carries the determinism: buckets are numbered from 1, and never come so far.
const DETERMINISM_SHIFT: u32 = 56;

/// A reduction in the terms of plans and executors.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) reducer: Reducer,
    pub(crate) properties: Properties,
}

/// A collective on bytes: what is to be done, for whatever executor does it.
#[derive(Debug)]
pub(super) struct Collective<'a> {
    pub(super) signature: CallSignature,
    pub(super) shape: Shape,
    pub(super) operation: Option<&'a Operation>,
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

    /// Counts a call and gives it its start.
    pub(crate) fn begin(&self, mut signature: CallSignature) -> Begin {
        // Ranks that ask for different determinism would choose different algorithms.
        signature.bucket |= (self.determinism.get() as u64) << DETERMINISM_SHIFT;
        Begin {
            group: self.id,
            sequence: self.calls.next(),
            signature,
            started: Instant::now(),
            timeout: self.timeout.get(),
        }
    }

    /// Carries out a collective on the working vector: in shared memory where all members share it, else in the
    /// engine. Small ones travel with the signatures.
    pub(super) fn collect(&self, collective: &Collective<'_>, working: &mut [u8]) -> Result<()> {
        let Collective { signature, shape, operation } = collective;
        let begin = self.begin(*signature);
        let reducer = operation.map(|operation| &operation.reducer);
        let direct = direct::Call { begin: &begin, shape, reducer };
        if let Some(result) = self.run_direct(&direct, working) {
            return result;
        }
        let shared = self.job.shared();
        let own = shape.byte_range(&shape.input(self.rank));
        let contributed = shape.byte_range(&shape.input(shape.root)).len();
        if self.size() > 1 && contributed <= small_limit(self.size()) {
            let contribution = match shape.collective {
                plan::Collective::Broadcast => Contribution::Only(shape.root, contributed),
                _ => Contribution::Each(contributed),
            };
            let own = working.get(own).unwrap_or_default().to_vec();
            let key = shared.begin(begin, Work::Exchange { own, contribution });
            if let Outcome::Gathered(gathered) = shared.wait(key)? {
                self.finish_small(collective, &gathered, working);
            }
            return Ok(());
        }
        let plan = Plan::new(self.job.select(shape), shape.clone(), self.rank);
        let reducer = reducer.cloned();
        lend(shared, begin, working, |working| Work::Planned(Job { plan, working, reducer }))?;
        Ok(())
    }

    /// Makes the result of all contributions, which are in rank order.
    fn finish_small(&self, collective: &Collective<'_>, gathered: &[u8], working: &mut [u8]) {
        let shape = &collective.shape;
        let part = shape.byte_range(&shape.result(self.rank));
        let Some(destination) = working.get_mut(part.clone()) else { return };
        match collective.operation {
            _ if destination.is_empty() => {}
            Some(operation) => fold_blocks(&operation.reducer, gathered, self.size(), part, destination),
            None => destination.copy_from_slice(gathered),
        }
    }

    pub(super) fn shape<T: Equivalence>(
        &self,
        collective: plan::Collective,
        count: usize,
        root: Rank,
        operation: Option<&Operation>,
    ) -> Shape {
        Shape {
            collective,
            ranks: self.size(),
            count,
            element_size: T::PACKED_SIZE.max(1),
            root,
            commutative: operation.is_none_or(|operation| operation.properties.commutative),
            exact_partials: operation.is_none_or(|operation| operation.reducer.exact_partials()),
            determinism: self.determinism.get(),
        }
    }
}

/// Folds equal blocks of `gathered`, of which `part` counts, into `destination`.
fn fold_blocks(
    reducer: &Reducer,
    gathered: &[u8],
    ranks: usize,
    part: std::ops::Range<usize>,
    destination: &mut [u8],
) {
    let block = gathered.len() / ranks.max(1);
    let mut blocks: Vec<Private> = gathered
        .chunks_exact(block.max(1))
        .filter_map(|block| block.get(part.clone()))
        .map(Private::copy_of)
        .collect();
    let mut result = Private::copy_of(destination);
    let sources: Vec<Span> = blocks.iter_mut().map(Private::span).collect();
    if result.len() > 0 && !sources.is_empty() {
        reducer.fold(&sources, result.span(), NonZeroU64::new(ranks as u64));
    }
    result.copy_to(destination);
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

/// Lends the packed form of values to `work`: their own memory where that is it, else a copy.
pub(super) fn with_bytes<T: Equivalence, R>(
    values: &mut [T],
    work: impl FnOnce(&mut [u8]) -> Result<R>,
) -> Result<R> {
    let len = values.len() * T::PACKED_SIZE;
    if let Some(bytes) = T::as_bytes_mut(values) {
        return if bytes.len() == len { work(bytes) } else { Err(wrong_bytes::<T>()) };
    }
    let mut packed = pack(values);
    let result = work(&mut packed)?;
    unpack(&packed, values)?;
    Ok(result)
}

/// The packed form of values.
pub(super) fn pack<T: Equivalence>(values: &[T]) -> Vec<u8> {
    if let Some(bytes) = T::as_bytes(values) {
        return bytes.to_vec();
    }
    let mut packed = vec![0; values.len() * T::PACKED_SIZE];
    values
        .iter()
        .zip(packed.chunks_exact_mut(T::PACKED_SIZE.max(1)))
        .for_each(|(value, bytes)| value.pack(bytes));
    packed
}

/// Values from their packed form, all or none.
pub(super) fn unpack<T: Equivalence>(packed: &[u8], values: &mut [T]) -> Result<()> {
    if let Some(bytes) = T::as_bytes_mut(values) {
        if bytes.len() != packed.len() {
            return Err(wrong_bytes::<T>());
        }
        bytes.copy_from_slice(packed);
        return Ok(());
    }
    let invalid =
        |error: InvalidValue| Error::Misuse(format!("a rank sent what is no value here: {error}").into());
    let all: Vec<T> = packed
        .chunks_exact(T::PACKED_SIZE.max(1))
        .map(|bytes| T::unpack(bytes).map_err(invalid))
        .collect::<Result<_>>()?;
    values.iter_mut().zip(all).for_each(|(to, from)| *to = from);
    Ok(())
}

/// The error that all ranks get alike, from the calls of all of them.
pub(crate) fn mismatch(calls: &[Option<CallSignature>], sequence: u64) -> Error {
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
    engine::mismatch(&table.unwrap_or_default(), sequence)
}

fn wrong_bytes<T>() -> Error {
    misuse(format!(
        "the `Equivalence` of `{}` offers bytes of another length than it packs",
        std::any::type_name::<T>()
    ))
}

pub(super) fn misuse(text: String) -> Error {
    Error::Misuse(text.into())
}
