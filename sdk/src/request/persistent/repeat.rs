//! What is kept of a call from one time to the next: enough that starting it allocates nothing here.

use crate::buffer::{Buffer, Private};
use crate::communicator::{Collective, Communicator, Fused, Own, Place, Way};
use crate::engine::{Begin, Outcome, Work};
use crate::{Element, Error, Rank, Result};
use gradwire_schema::Gradient;

/// A call that is made again and again, in memory `M` that is kept beside it.
pub(super) trait Repeat<M>: Send {
    fn name(&self) -> &'static str;
    /// Whether the memory is used while an operation is under way.
    fn uses_memory(&self) -> bool {
        true
    }
    /// The blocking form; `None` where those who start the call do not meet it.
    fn run(&mut self, communicator: &Communicator, memory: &mut M) -> Option<Result<()>>;
    fn start(&mut self, communicator: &Communicator, memory: &mut M) -> Result<(Begin, Work)>;
    /// Once the operation has ended.
    fn conclude(&mut self, memory: &mut M, outcome: Result<Outcome>) -> Result<()>;
}

/// A call without values.
pub(super) struct Nothing(pub(super) Collective);

impl Repeat<()> for Nothing {
    fn name(&self) -> &'static str {
        self.0.signature.collective.name()
    }

    fn run(&mut self, communicator: &Communicator, (): &mut ()) -> Option<Result<()>> {
        Some(communicator.call::<u8>(&self.0, &mut []))
    }

    fn start(&mut self, communicator: &Communicator, (): &mut ()) -> Result<(Begin, Work)> {
        let start = communicator.start_empty(&self.0);
        Ok((start.begin, start.work))
    }

    fn conclude(&mut self, (): &mut (), outcome: Result<Outcome>) -> Result<()> {
        outcome.map(drop)
    }
}

/// A collective and where it works, while it is under way.
struct Placed<T> {
    call: Collective,
    rank: Rank,
    place: Option<Place<T>>,
    /// Memory of the last time.
    spare: Private,
}

impl<T: Element> Placed<T> {
    fn new(call: Collective) -> Self {
        Self { call, rank: 0, place: None, spare: Private::default() }
    }

    fn start(&mut self, communicator: &Communicator, place: Place<T>) -> (Begin, Work) {
        self.rank = communicator.rank();
        let begin = communicator.begin(self.call.signature);
        let work = communicator.work(&self.call, self.place.insert(place).span());
        (begin, work)
    }

    fn conclude(&mut self, outcome: Result<Outcome>) -> Result<()> {
        let Some(mut place) = self.place.take() else {
            return Err(Error::Bug("a persistent call without a place".into()));
        };
        let result = place.conclude(outcome, &self.call, self.rank);
        self.spare = place.into_spare();
        result
    }
}

/// A call on one buffer.
pub(super) struct Whole<T>(Placed<T>);

impl<T: Element> Whole<T> {
    pub(super) fn new(call: Collective) -> Self {
        Self(Placed::new(call))
    }
}

impl<T: Element> Repeat<Buffer<T>> for Whole<T> {
    fn name(&self) -> &'static str {
        self.0.call.signature.collective.name()
    }

    fn run(&mut self, communicator: &Communicator, buffer: &mut Buffer<T>) -> Option<Result<()>> {
        let call = &self.0.call;
        Some(call.check_whole(buffer.len()).and_then(|()| communicator.call(call, buffer)))
    }

    fn start(&mut self, communicator: &Communicator, buffer: &mut Buffer<T>) -> Result<(Begin, Work)> {
        let Placed { call, spare, .. } = &mut self.0;
        call.check_whole(buffer.len())?;
        let spare = std::mem::take(spare);
        let place = Place::within(call, communicator.rank(), buffer.target(), spare);
        Ok(self.0.start(communicator, place))
    }

    fn conclude(&mut self, _: &mut Buffer<T>, outcome: Result<Outcome>) -> Result<()> {
        self.0.conclude(outcome)
    }
}

/// A call on a source and a destination.
pub(super) struct Apart<T>(Placed<T>);

impl<T: Element> Apart<T> {
    pub(super) fn new(call: Collective) -> Self {
        Self(Placed::new(call))
    }
}

impl<T: Element> Repeat<(Buffer<T>, Buffer<T>)> for Apart<T> {
    fn name(&self) -> &'static str {
        self.0.call.signature.collective.name()
    }

    fn run(
        &mut self,
        communicator: &Communicator,
        memory: &mut (Buffer<T>, Buffer<T>),
    ) -> Option<Result<()>> {
        Some(communicator.call_into(&self.0.call, &memory.0, &mut memory.1))
    }

    fn start(
        &mut self,
        communicator: &Communicator,
        (source, destination): &mut (Buffer<T>, Buffer<T>),
    ) -> Result<(Begin, Work)> {
        let Placed { call, spare, .. } = &mut self.0;
        let own = Own::of_target(source.target());
        let spare = std::mem::take(spare);
        let place = Place::towards(call, communicator.rank(), &own, destination.target(), spare)?;
        Ok(self.0.start(communicator, place))
    }

    fn conclude(&mut self, _: &mut (Buffer<T>, Buffer<T>), outcome: Result<Outcome>) -> Result<()> {
        self.0.conclude(outcome)
    }
}

/// A call on a struct of tensors.
pub(super) struct Struct {
    way: Way,
    fused: Option<Fused>,
    spare: Vec<Vec<u8>>,
}

impl Struct {
    pub(super) fn new(way: Way) -> Self {
        Self { way, fused: None, spare: Vec::new() }
    }
}

impl<G: Gradient> Repeat<G> for Struct {
    fn name(&self) -> &'static str {
        self.way.started().name()
    }

    fn run(&mut self, _: &Communicator, _: &mut G) -> Option<Result<()>> {
        None
    }

    fn uses_memory(&self) -> bool {
        false
    }

    fn start(&mut self, communicator: &Communicator, gradient: &mut G) -> Result<(Begin, Work)> {
        let spare = std::mem::take(&mut self.spare);
        let (begin, work, fused) = communicator.start_struct(gradient, self.way, spare)?;
        self.fused = Some(fused);
        Ok((begin, work))
    }

    fn conclude(&mut self, gradient: &mut G, outcome: Result<Outcome>) -> Result<()> {
        let Some(mut fused) = self.fused.take() else {
            return Err(Error::Bug("a persistent call without buckets".into()));
        };
        let result = fused.conclude(gradient, outcome);
        self.spare = fused.into_spare();
        result
    }
}
