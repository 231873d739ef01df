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
        mut values: Target<[T]>,
    ) -> Start {
        let place = match values.bytes() {
            Some(span) if collective.results_in_all(self.rank) => Place::Values { span, before: None },
            _ => Place::scratch(&values.with(|values| pack(values)), 0, collective.len(self.rank), values),
        };
        self.start(collective, place)
    }

    /// A collective that begins with a rank's part in `source`, which is read now, and ends with its part in
    /// `destination`.
    pub(crate) fn start_into<T: Equivalence>(
        &self,
        collective: Collective,
        source: &[T],
        mut destination: Target<[T]>,
    ) -> Result<Start> {
        let shape = &collective.shape;
        check_length("source", shape.input(self.rank).len(), source.len())?;
        check_length("destination", shape.result(self.rank).len(), destination.with(|values| values.len()))?;
        let own = pack(source);
        let input = collective.input(self.rank);
        let place = match destination.bytes().map(|span| (span, span.part(input.clone()))) {
            Some((span, Some(part))) if collective.results_in_all(self.rank) && part.len() < span.len() => {
                // Only the own part is written before all ranks have agreed, and put back if they do not.
                let mut before = Vec::new();
                part.append_to(&mut before);
                part.write(&own);
                Place::Values { span, before: Some((part, before)) }
            }
            _ => Place::scratch(&own, input.start, collective.len(self.rank), destination),
        };
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
pub(super) enum Place<T> {
    /// In the caller's values. `before`: what lay where the own part was written.
    Values { span: Span, before: Option<(Span, Vec<u8>)> },
    /// In a vector of its own, of which the result goes into the caller's values, if there are any.
    Scratch { scratch: Private, values: Option<Target<[T]>> },
}

impl<T: Equivalence> Place<T> {
    /// A vector of `len` bytes that holds `own` from `start` on.
    fn scratch(own: &[u8], start: usize, len: usize, values: Target<[T]>) -> Self {
        let mut scratch = Private::zeroed(len);
        scratch.span().part(start..start + own.len()).inspect(|part| part.write(own));
        Self::Scratch { scratch, values: Some(values) }
    }

    /// For a collective on which all ranks have agreed: nothing need be put back.
    pub(super) fn between(
        collective: &Collective,
        rank: Rank,
        own: &Own,
        destination: Option<Target<[T]>>,
    ) -> Result<Self> {
        let (input, len) = (collective.input(rank), collective.len(rank));
        let mut destination = destination;
        let whole = destination.as_mut().and_then(Target::bytes).filter(|span| span.len() == len);
        let mut place = match whole.filter(|_| collective.results_in_all(rank)) {
            Some(span) => Self::Values { span, before: None },
            None => Self::Scratch { scratch: Private::try_zeroed(len)?, values: destination },
        };
        match place.span().part(input) {
            Some(part) if part.len() == own.len() => own.write_to(part),
            _ => return Err(Error::Bug("a rank told another length than it has".into())),
        }
        Ok(place)
    }

    pub(super) fn span(&mut self) -> Span {
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

    pub(super) fn conclude(
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
                    part.write(before);
                }
                return Err(error);
            }
        }
        let Self::Scratch { scratch, values: Some(values) } = self else { return Ok(()) };
        let packed = scratch.copy_out(collective.result(rank));
        let elements = collective.shape.result(rank);
        // In place the result is a part of the values, else it is all of them.
        values.with(|values| {
            let whole = values.len() == elements.len();
            unpack(&packed, if whole { values } else { &mut values[elements] })
        })
    }
}
