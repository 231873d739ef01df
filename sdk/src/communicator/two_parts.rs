//! Calls in two parts: first the ranks tell each other how much there is, then they move it.
//!
//! The first part is a small collective. After it all ranks check what they were told and find the same mistake, or
//! none: no byte of the values has been sent by then. What the second part is follows from the first alone, so that the
//! engine goes from one to the other without the caller, and the ranks need not agree again. Memory for a result is made
//! between the two.
//!
//! Ranks that wait and share memory carry out the parts one after the other there. Where one of them does not wait the
//! first part meets it in the engine, and so does the second.

use super::Communicator;
use super::call::Collective;
use super::memory::{pack, packed, unpack_all};
use super::per_rank::PerRank;
use super::start::{Place, Start};
use crate::buffer::{Private, Span, Target, lend_to_scope};
use crate::direct::Operands;
use crate::engine::{Begin, Outcome, Part, Then, Work};
use crate::{Error, Rank, Result, plan};
use gradwire_schema::{CallSignature, Equivalence, LayoutDigest};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// A call in two parts.
pub(crate) struct Telling {
    /// What the ranks tell each other: as many bytes of each, or it is a mismatch.
    first: Collective,
    own: Vec<u8>,
    /// What they do then, by the numbers of all ranks.
    second: Box<Second>,
}

type Second = dyn FnOnce(&[usize]) -> Result<Collective> + Send;

/// What a rank has of the values, packed.
pub(crate) enum Own<'a> {
    Bytes(Cow<'a, [u8]>),
    /// Memory that the operation may read.
    Lent(Span),
}

impl<'a> Own<'a> {
    /// Values that are read before the operation begins.
    pub(crate) fn of<T: Equivalence>(values: &'a [T]) -> Self {
        Self::Bytes(packed(values))
    }
}

impl Own<'static> {
    pub(crate) fn copy_of<T: Equivalence>(values: &[T]) -> Self {
        Self::Bytes(pack(values).into())
    }

    /// Values that outlast the operation.
    pub(crate) fn of_target<T: Equivalence>(mut values: Target<[T]>) -> Self {
        match values.bytes() {
            Some(span) => Self::Lent(span),
            None => values.with(|values| Self::copy_of(values)),
        }
    }

    /// Values that are lent to a scope.
    fn of_scope<T: Equivalence>(values: &[T]) -> Self {
        lend_to_scope(values).map_or_else(|| Self::copy_of(values), Self::Lent)
    }
}

impl Own<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Lent(span) => span.len(),
        }
    }

    pub(super) fn write_to(&self, place: Span) {
        match self {
            Self::Bytes(bytes) => place.write(bytes),
            Self::Lent(span) => place.copy_from(*span),
        }
    }
}

/// How far a call in two parts has come.
enum Told {
    /// The first part is over: the second.
    All(Collective),
    /// Nothing was told: the engine is to carry out both.
    Nothing(Begin, Telling),
}

impl Communicator {
    /// A call on values of `T` in which each rank tells its `own` numbers, as many as all others. `second`: what then
    /// follows from the numbers of all ranks, one rank's behind the other's.
    pub(super) fn telling<T: Equivalence>(
        &self,
        signature: CallSignature,
        own: &[u64],
        second: impl FnOnce(&[usize]) -> Result<Collective> + Send + 'static,
    ) -> Telling {
        // Never that of a call that moves values.
        let layout = LayoutDigest::new(!T::FINGERPRINT).length(own.len() as u64).finish();
        let own: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
        let shape = self.shape(plan::Collective::AllGather, own.len(), 1, None, None);
        let first = Collective { signature: CallSignature { layout, ..signature }, shape, operation: None };
        Telling { first, own, second: Box::new(second) }
    }

    /// Carries out a call that ends in `destination`; the second part tells what it was.
    pub(super) fn call_telling_into<T: Equivalence>(
        &self,
        telling: Telling,
        source: &[T],
        destination: &mut [T],
    ) -> Result<Collective> {
        match self.tell(telling)? {
            Told::All(call) => self.call_into(&call, source, destination).map(|()| call),
            Told::Nothing(begin, telling) => self.scope(|scope| {
                let own = Own::of_scope(source);
                let start = |comm: &Self, destination| {
                    Ok(comm.start_telling_into(begin, telling, own, destination, |call, _| call))
                };
                scope.lend(destination, start).wait().1
            })?,
        }
    }

    /// Carries out a call whose result goes into memory made for it.
    pub(super) fn call_telling<T: Equivalence>(
        &self,
        telling: Telling,
        source: &[T],
    ) -> Result<(Collective, Vec<T>)> {
        match self.tell(telling)? {
            Told::All(call) => {
                let working = self.call_packed(&call, &packed(source))?;
                let values = unpack_all(&working[call.result(self.rank)])?;
                Ok((call, values))
            }
            Told::Nothing(begin, telling) => self.scope(|scope| {
                let own = Own::of_scope(source);
                let start = self.start_telling(begin, telling, own, |call, _, values| Ok((call, values)));
                scope.open(|| (), Ok(start)).wait().1
            })?,
        }
    }

    /// The first part, where all ranks wait for it in shared memory.
    fn tell(&self, telling: Telling) -> Result<Told> {
        let counted = self.count(telling.first.signature);
        let mut told = vec![0; telling.first.len(self.rank)];
        told[telling.first.input(self.rank)].copy_from_slice(&telling.own);
        match self.run_direct(&telling.first.direct(&counted), Operands::Working(&mut told)) {
            Some(result) => result.and_then(|()| telling.told(&told)).map(Told::All),
            None => Ok(Told::Nothing(counted.begin(), telling)),
        }
    }

    /// A call that ends in `destination`. `finish` is told what the second part was.
    pub(crate) fn start_telling_into<T: Equivalence, R>(
        &self,
        begin: Begin,
        telling: Telling,
        own: Own<'static>,
        destination: Target<[T]>,
        finish: impl FnOnce(Collective, Rank) -> R + Send + 'static,
    ) -> Start<R> {
        let place = move |call: &Collective, rank| Place::between(call, rank, &own, Some(destination));
        self.start_in_two_parts(begin, telling, place, |call, rank, _| Ok(finish(call, rank)))
    }

    /// A call whose result goes into memory made for it, and from there to `finish`.
    pub(crate) fn start_telling<T: Equivalence, R>(
        &self,
        begin: Begin,
        telling: Telling,
        own: Own<'static>,
        finish: impl FnOnce(Collective, Rank, Vec<T>) -> Result<R> + Send + 'static,
    ) -> Start<R> {
        let place = move |call: &Collective, rank| Place::<T>::between(call, rank, &own, None);
        self.start_in_two_parts(begin, telling, place, |call, rank, mut place| {
            let values = unpack_all(&place.result(&call, rank))?;
            finish(call, rank, values)
        })
    }

    fn start_in_two_parts<T: Equivalence, R>(
        &self,
        begin: Begin,
        telling: Telling,
        place: impl FnOnce(&Collective, Rank) -> Result<Place<T>> + Send + 'static,
        finish: impl FnOnce(Collective, Rank, Place<T>) -> Result<R> + Send + 'static,
    ) -> Start<R> {
        let (rank, selector) = (self.rank, self.job.selector().clone());
        let mut told = Private::zeroed(telling.first.len(rank));
        told.span().part(telling.first.input(rank)).inspect(|part| part.write(&telling.own));
        let first = Box::new(self.work(&telling.first, told.span()));
        // The second part, with its memory: made by the engine, concluded by whoever waits.
        let made = Arc::new(Mutex::new(None));
        let to_make = made.clone();
        let then = Then::new(1, move |outcome| {
            telling.first.conclude(outcome, rank, told.span());
            let call = telling.told(&told.copy_out(0..told.len()))?;
            let mut place = place(&call, rank)?;
            let job = call.job(&selector, rank, place.span());
            let second = Part { signature: call.signature, job, then: None };
            *to_make.lock().unwrap_or_else(PoisonError::into_inner) = Some((call, place));
            Ok(second)
        });
        let conclude = move |outcome: Result<Outcome>| {
            let outcome = outcome?;
            let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some((call, mut place)) = made else {
                return Err(Error::Bug("a call in two parts ended before its second".into()));
            };
            place.conclude(Ok(outcome), &call, rank)?;
            finish(call, rank, place)
        };
        Start { begin, work: Work::InParts(first, then), conclude: Box::new(conclude) }
    }
}

impl Telling {
    /// The second part, by what all ranks have told.
    fn told(self, told: &[u8]) -> Result<Collective> {
        let numbers = told.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        // What is too long for a count here fits no buffer either.
        let numbers: Vec<usize> =
            numbers.map(|number| usize::try_from(number).unwrap_or(usize::MAX)).collect();
        (self.second)(&numbers)
    }

    /// What the ranks compare: the signature of the first part.
    pub(crate) fn signature(&self) -> CallSignature {
        self.first.signature
    }
}

impl Collective {
    /// How many elements come from each rank: to all, to the root, or to this one.
    pub(crate) fn counts(&self, rank: Rank) -> Vec<usize> {
        let count = |from| match self.shape.collective {
            plan::Collective::AllToAll => self.shape.incoming(rank, from).len(),
            _ => self.shape.block(from).len(),
        };
        (0..self.shape.ranks).map(count).collect()
    }

    /// What has come from each rank.
    pub(crate) fn per_rank<T>(&self, rank: Rank, values: Vec<T>) -> PerRank<T> {
        PerRank::new(values, self.counts(rank))
    }

    /// The same, at the root.
    pub(crate) fn per_rank_at_root<T>(&self, rank: Rank, values: Vec<T>) -> Option<PerRank<T>> {
        (rank == self.shape.root).then(|| self.per_rank(rank, values))
    }
}
