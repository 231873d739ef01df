//! Collectives that are set up once and carried out again and again.

mod repeat;

use super::start_in_engine;
use crate::buffer::Buffer;
use crate::communicator::{Collective, Communicator, Way};
use crate::engine::Key;
use crate::{Element, Error, Rank, Reduction, Result};
use gradwire_schema::Gradient;
use repeat::{Apart, Nothing, Repeat, Struct, Whole};
use std::fmt;

/// A collective that was set up once, with its memory `M`: a [`Buffer`] that it works in, a source and a destination, a
/// struct of tensors, or nothing. Every iteration fills the memory, carries the call out, and reads the result.
///
/// [`run`](Self::run) waits, as the blocking call does; [`start`](Self::start) and [`wait`](Self::wait) leave time for
/// something else between them, during which the memory is out of reach. Ranks may mix them with each other and with the
/// plain forms of the call.
///
/// ```
/// # gradwire::run(2, |comm| {
/// let mut step = comm.all_reduce_init(comm.allocate::<f32>(1000)?, gradwire::Average)?;
/// for iteration in 0..10 {
///     step.memory_mut()?.fill(iteration as f32);
///     step.run()?;
///     assert_eq!(step.memory()?[999], iteration as f32);
/// }
/// # Ok::<(), gradwire::Error>(())
/// # })?.into_iter().collect::<gradwire::Result<()>>()?;
/// # Ok::<(), gradwire::Error>(())
/// ```
pub struct Persistent<'c, M: Send + 'static> {
    communicator: &'c Communicator,
    /// There until it is dropped.
    held: Option<Held<M>>,
    under_way: Option<Key>,
}

struct Held<M> {
    memory: M,
    call: Box<dyn Repeat<M>>,
}

impl<M: Send + 'static> Persistent<'_, M> {
    /// The memory, between one call and the next.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) while a call is under way.
    pub fn memory(&self) -> Result<&M> {
        self.check_idle()?;
        self.held.as_ref().map(|held| &held.memory).ok_or_else(gone)
    }

    /// The memory, to be filled for the next call.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) while a call is under way.
    pub fn memory_mut(&mut self) -> Result<&mut M> {
        self.check_idle()?;
        self.held.as_mut().map(|held| &mut held.memory).ok_or_else(gone)
    }

    /// Makes the call, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) while a call is under way, or when buffers have been exchanged for others of another
    /// length; and those of the blocking call.
    pub fn run(&mut self) -> Result<()> {
        self.check_idle()?;
        let Held { memory, call } = self.held.as_mut().ok_or_else(gone)?;
        if let Some(result) = call.run(self.communicator, memory) {
            return result;
        }
        self.start()?;
        self.wait()
    }

    /// Starts the call.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) as for [`run`](Self::run).
    pub fn start(&mut self) -> Result<()> {
        self.check_idle()?;
        let Held { memory, call } = self.held.as_mut().ok_or_else(gone)?;
        let (begin, work) = call.start(self.communicator, memory)?;
        self.under_way = Some(start_in_engine(self.communicator.job(), begin, work));
        Ok(())
    }

    /// Waits for the call that was started last; at once if there is none under way.
    ///
    /// # Errors
    ///
    /// Those of the blocking call.
    pub fn wait(&mut self) -> Result<()> {
        let Some(key) = self.under_way else { return Ok(()) };
        let outcome = self.communicator.job().shared().wait(key);
        self.under_way = None;
        let Held { memory, call } = self.held.as_mut().ok_or_else(gone)?;
        call.conclude(memory, outcome)
    }

    /// Whether the call that was started last has ended: the next [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn test(&self) -> bool {
        self.under_way.is_none_or(|key| self.communicator.job().shared().test(key))
    }

    fn check_idle(&self) -> Result<()> {
        if self.under_way.is_none() {
            return Ok(());
        }
        Err(Error::Misuse("the persistent call is under way: wait for it first".into()))
    }
}

fn gone() -> Error {
    Error::Bug("a persistent call without its memory".into())
}

impl<M: Send + 'static> Drop for Persistent<'_, M> {
    /// A call that is under way completes for the others; the memory that it uses is freed after it.
    fn drop(&mut self) {
        if let (Some(key), Some(Held { memory, call })) = (self.under_way, self.held.take()) {
            let memory = Some(memory).filter(|_| call.uses_memory());
            self.communicator.job().shared().detach(key, Box::new((memory, call)));
        }
    }
}

impl<M: Send + 'static> fmt::Debug for Persistent<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Persistent")
            .field("call", &self.held.as_ref().map(|held| held.call.name()))
            .field("under_way", &self.under_way.is_some())
            .finish_non_exhaustive()
    }
}

/// A call on one buffer, and on a source and a destination.
type InPlace<'c, T> = Persistent<'c, Buffer<T>>;
type Between<'c, T> = Persistent<'c, (Buffer<T>, Buffer<T>)>;

/// Calls set up for many iterations. Setting up is no call: nothing is sent. Lengths that do not fit are told by the calls;
/// buffers that are not used on a rank should be empty there.
impl Communicator {
    /// Sets up a [`barrier`](Self::barrier).
    pub fn barrier_init(&self) -> Persistent<'_, ()> {
        self.repeated((), Nothing(self.barrier_call()))
    }

    /// Sets up a [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank.
    pub fn broadcast_init<T: Element>(&self, buffer: Buffer<T>, root: Rank) -> Result<InPlace<'_, T>> {
        Ok(self.in_place(self.broadcast_call::<T>(buffer.len(), root)?, buffer))
    }

    /// Sets up an [`all_reduce`](Self::all_reduce).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is more than an address space holds.
    pub fn all_reduce_init<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        reduction: R,
    ) -> Result<InPlace<'_, T>> {
        Ok(self.in_place(self.all_reduce_call(buffer.len(), &reduction)?, buffer))
    }

    /// Sets up a [`reduce`](Self::reduce).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank.
    pub fn reduce_init<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        root: Rank,
        reduction: R,
    ) -> Result<InPlace<'_, T>> {
        Ok(self.in_place(self.reduce_call(buffer.len(), root, &reduction)?, buffer))
    }

    /// Sets up a [`scan`](Self::scan).
    ///
    /// # Errors
    ///
    /// As [`all_reduce_init`](Self::all_reduce_init).
    pub fn scan_init<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        reduction: R,
    ) -> Result<InPlace<'_, T>> {
        Ok(self.in_place(self.scan_call(buffer.len(), &reduction)?, buffer))
    }

    /// Sets up an [`exclusive_scan`](Self::exclusive_scan).
    ///
    /// # Errors
    ///
    /// As [`all_reduce_init`](Self::all_reduce_init).
    pub fn exclusive_scan_init<T: Element, R: Reduction<T>>(
        &self,
        buffer: Buffer<T>,
        reduction: R,
    ) -> Result<InPlace<'_, T>> {
        Ok(self.in_place(self.exclusive_scan_call(buffer.len(), &reduction)?, buffer))
    }

    /// Sets up a [`gather_into`](Self::gather_into).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank.
    pub fn gather_init<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        root: Rank,
    ) -> Result<Between<'_, T>> {
        Ok(self.between(self.gather_call::<T>(source.len(), root)?, source, destination))
    }

    /// Sets up a [`scatter_into`](Self::scatter_into).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank.
    pub fn scatter_init<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        root: Rank,
    ) -> Result<Between<'_, T>> {
        Ok(self.between(self.scatter_call::<T>(destination.len(), root)?, source, destination))
    }

    /// Sets up an [`all_gather_varying_into`](Self::all_gather_varying_into).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the counts are not one for each rank.
    pub fn all_gather_varying_init<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        counts: &[usize],
    ) -> Result<Between<'_, T>> {
        Ok(self.between(self.all_gather_varying_call::<T>(counts)?, source, destination))
    }

    /// Sets up a [`reduce_scatter_varying_into`](Self::reduce_scatter_varying_into).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the counts are not one for each rank.
    pub fn reduce_scatter_varying_init<T: Element, R: Reduction<T>>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        counts: &[usize],
        reduction: R,
    ) -> Result<Between<'_, T>> {
        Ok(self.between(self.reduce_scatter_varying_call(counts, &reduction)?, source, destination))
    }

    /// Sets up an [`all_gather_into`](Self::all_gather_into).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is more than an address space holds. Lengths that do not fit are told by the
    /// calls.
    pub fn all_gather_init<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
    ) -> Result<Between<'_, T>> {
        Ok(self.between(self.all_gather_call::<T>(source.len())?, source, destination))
    }

    /// Sets up a [`reduce_scatter_into`](Self::reduce_scatter_into).
    ///
    /// # Errors
    ///
    /// As [`all_gather_init`](Self::all_gather_init).
    pub fn reduce_scatter_init<T: Element, R: Reduction<T>>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
        reduction: R,
    ) -> Result<Between<'_, T>> {
        Ok(self.between(self.reduce_scatter_call(destination.len(), &reduction)?, source, destination))
    }

    /// Sets up an [`all_to_all_into`](Self::all_to_all_into).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when the length of the source is no multiple of the number of ranks; and as
    /// [`all_gather_init`](Self::all_gather_init).
    pub fn all_to_all_init<T: Element>(
        &self,
        source: Buffer<T>,
        destination: Buffer<T>,
    ) -> Result<Between<'_, T>> {
        let call = self.all_to_all_call::<T>(self.share_of(source.len())?)?;
        Ok(self.between(call, source, destination))
    }

    /// Sets up an [`all_reduce_gradient`](Self::all_reduce_gradient) of a struct, whose tensors may have other lengths at
    /// every call. Both `run` and `start` meet [`start_all_reduce_gradient`](Self::start_all_reduce_gradient), not the
    /// blocking form.
    pub fn all_reduce_gradient_init<G: Gradient + Send + 'static>(&self, gradient: G) -> Persistent<'_, G> {
        self.repeated(gradient, Struct::new(Way::AllReduce))
    }

    /// Sets up a [`reduce_gradient`](Self::reduce_gradient), as [`all_reduce_gradient_init`](Self::all_reduce_gradient_init)
    /// does. That there is no such rank is told by the calls.
    pub fn reduce_gradient_init<G: Gradient + Send + 'static>(
        &self,
        gradient: G,
        root: Rank,
    ) -> Persistent<'_, G> {
        self.repeated(gradient, Struct::new(Way::Reduce(root)))
    }

    /// Sets up a [`broadcast_gradient`](Self::broadcast_gradient), as
    /// [`all_reduce_gradient_init`](Self::all_reduce_gradient_init) does. That there is no such rank is told by the calls.
    pub fn broadcast_gradient_init<G: Gradient + Send + 'static>(
        &self,
        gradient: G,
        root: Rank,
    ) -> Persistent<'_, G> {
        self.repeated(gradient, Struct::new(Way::Broadcast(root)))
    }

    fn in_place<T: Element>(&self, call: Collective, memory: Buffer<T>) -> InPlace<'_, T> {
        self.repeated(memory, Whole::new(call))
    }

    fn between<T: Element>(
        &self,
        call: Collective,
        source: Buffer<T>,
        destination: Buffer<T>,
    ) -> Between<'_, T> {
        self.repeated((source, destination), Apart::new(call))
    }

    fn repeated<M: Send + 'static>(&self, memory: M, call: impl Repeat<M> + 'static) -> Persistent<'_, M> {
        Persistent { communicator: self, held: Some(Held { memory, call: Box::new(call) }), under_way: None }
    }
}
