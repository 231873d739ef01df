//! Collectives that are started in the engine and concluded later.

use super::Communicator;
use super::call::Collective;
use super::memory::{check_length, pack, unpack};
use super::two_parts::Own;
use crate::buffer::{Private, Span, Target};
use crate::engine::{Begin, Outcome, Work};
use crate::{Error, Rank, Result};
use gradwire_schema::Equivalence;

/// What becomes of the outcome of an operation, once it has ended.
pub(crate) type Conclude<R> = Box<dyn FnOnce(Result<Outcome>) -> Result<R> + Send>;

/// An operation that can be started, and what is to be made of its outcome.
pub(crate) struct Start<R = ()> {
    pub(crate) begin: Begin,
    pub(crate) work: Work,
    pub(crate) conclude: Conclude<R>,
}

impl Communicator {
    /// A collective without values.
    pub(crate) fn start_empty(&self, collective: &Collective) -> Start {
        let begin = self.begin(collective.signature);
        Start {
            begin,
            work: self.work(collective, Span::EMPTY),
            conclude: Box::new(|outcome| outcome.map(drop)),
        }
    }

    /// A collective on values that are the whole working vector, at the beginning and at the end.
    pub(crate) fn start_in_place<T: Equivalence>(
        &self,
        collective: Collective,
        values: Target<[T]>,
    ) -> Start {
        let place = Place::within(&collective, self.rank, values, Private::default());
        self.start(collective, place)
    }

    /// A collective that begins with a rank's part in `own`, which is read now, and ends with its part in `destination`.
    pub(crate) fn start_into<T: Equivalence>(
        &self,
        collective: Collective,
        own: &Own<'_>,
        destination: Target<[T]>,
    ) -> Result<Start> {
        let place = Place::towards(&collective, self.rank, own, destination, Private::default())?;
        Ok(self.start(collective, place))
    }

    fn start<T: Equivalence>(&self, collective: Collective, mut place: Place<T>) -> Start {
        let begin = self.begin(collective.signature);
        let work = self.work(&collective, place.span());
        let rank = self.rank;
        Start { begin, work, conclude: Box::new(move |outcome| place.conclude(outcome, &collective, rank)) }
    }
}

/// Where a started collective works.
pub(crate) enum Place<T> {
    /// In the caller's values. `before`: what lay where the own part was written.
    Values { span: Span, before: Option<(Span, Private)>, spare: Private },
    /// In a vector of its own, of which the result goes into the caller's values, if there are any.
    Scratch { scratch: Private, values: Option<Target<[T]>> },
}

impl<T: Equivalence> Place<T> {
    /// For a collective that begins and ends in all of `values`. `spare`: memory that may be used.
    pub(crate) fn within(
        collective: &Collective,
        rank: Rank,
        mut values: Target<[T]>,
        mut spare: Private,
    ) -> Self {
        let bytes = values.bytes();
        if let Some(span) = bytes.filter(|_| collective.results_in_all(rank)) {
            return Self::Values { span, before: None, spare };
        }
        spare.resize(collective.len(rank));
        match bytes {
            Some(bytes) => spare.span().copy_from(bytes),
            None => spare.span().write(&values.with(|values| pack(values))),
        }
        Self::Scratch { scratch: spare, values: Some(values) }
    }

    /// For a collective that begins with `own`, and ends in `destination`.
    pub(crate) fn towards(
        collective: &Collective,
        rank: Rank,
        own: &Own<'_>,
        mut destination: Target<[T]>,
        mut spare: Private,
    ) -> Result<Self> {
        let shape = &collective.shape;
        check_length("source", shape.input(rank).len(), own.len() / T::PACKED_SIZE.max(1))?;
        check_length("destination", shape.result(rank).len(), destination.with(|values| values.len()))?;
        let input = collective.input(rank);
        match destination.bytes().map(|span| (span, span.part(input.clone()))) {
            Some((span, Some(part))) if collective.results_in_all(rank) && part.len() < span.len() => {
                // Only the own part is written before all ranks have agreed, and put back if they do not.
                spare.resize(part.len());
                spare.span().copy_from(part);
                own.write_to(part);
                Ok(Self::Values { span, before: Some((part, spare)), spare: Private::default() })
            }
            _ => {
                spare.resize(collective.len(rank));
                spare.span().part(input).inspect(|part| own.write_to(*part));
                Ok(Self::Scratch { scratch: spare, values: Some(destination) })
            }
        }
    }

    /// For a collective on which all ranks have agreed: nothing need be put back.
    pub(super) fn between(
        collective: &Collective,
        rank: Rank,
        own: &Own<'_>,
        destination: Option<Target<[T]>>,
    ) -> Result<Self> {
        let (input, len) = (collective.input(rank), collective.len(rank));
        let mut destination = destination;
        let whole = destination.as_mut().and_then(Target::bytes).filter(|span| span.len() == len);
        let mut place = match whole.filter(|_| collective.results_in_all(rank)) {
            Some(span) => Self::Values { span, before: None, spare: Private::default() },
            None => Self::Scratch { scratch: Private::try_zeroed(len)?, values: destination },
        };
        match place.span().part(input) {
            Some(part) if part.len() == own.len() => own.write_to(part),
            _ => return Err(Error::Bug("a rank told another length than it has".into())),
        }
        Ok(place)
    }

    pub(crate) fn span(&mut self) -> Span {
        match self {
            Self::Values { span, .. } => *span,
            Self::Scratch { scratch, .. } => scratch.span(),
        }
    }

    /// A copy of a rank's result, packed.
    pub(super) fn result(&mut self, collective: &Collective, rank: Rank) -> Vec<u8> {
        let mut packed = Vec::new();
        self.span().part(collective.result(rank)).inspect(|part| part.append_to(&mut packed));
        packed
    }

    pub(crate) fn conclude(
        &mut self,
        outcome: Result<Outcome>,
        collective: &Collective,
        rank: Rank,
    ) -> Result<()> {
        let working = self.span();
        match outcome {
            Ok(outcome) => collective.conclude(outcome, rank, working),
            Err(error) => {
                if let (Self::Values { before: Some((part, before)), .. }, Error::Mismatch { .. }) =
                    (self, &error)
                {
                    part.copy_from(before.span());
                }
                return Err(error);
            }
        }
        let Self::Scratch { scratch, values: Some(values) } = self else { return Ok(()) };
        let (part, elements) = (collective.result(rank), collective.shape.result(rank));
        // In place the result is a part of the values, else it is all of them.
        let whole = values.with(|values| values.len() == elements.len());
        if let Some(bytes) = values.bytes() {
            let place = if whole { Some(bytes) } else { bytes.part(part.clone()) };
            place.zip(scratch.span().part(part)).inspect(|(place, result)| place.copy_from(*result));
            return Ok(());
        }
        let packed = scratch.copy_out(part);
        values.with(|values| unpack(&packed, if whole { values } else { &mut values[elements] }))
    }

    /// Memory to be used again.
    pub(crate) fn into_spare(self) -> Private {
        match self {
            Self::Values { before: Some((_, spare)), .. } | Self::Values { spare, .. } => spare,
            Self::Scratch { scratch, .. } => scratch,
        }
    }
}
