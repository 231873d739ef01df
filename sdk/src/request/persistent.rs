//! Collectives that are set up once and carried out again and again.

use super::Operation;
use crate::buffer::Buffer;
use crate::communicator::{Collective, Communicator, Start};
use crate::{Element, Error, Rank, Reduction, Result};
use std::fmt;

/// A collective that was set up once, with its memory `M`: a [`Buffer`] that it works in, or a source and a destination.
/// Every iteration fills the memory, carries the call out, and reads the result.
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
pub struct Persistent<'c, M: Send + Default + 'static> {
    communicator: &'c Communicator,
    call: Collective,
    memory: M,
    run: fn(&Communicator, &Collective, &mut M) -> Result<()>,
    start: fn(&Communicator, &Collective, &mut M) -> Result<Start>,
    under_way: Option<Operation<()>>,
}

impl<M: Send + Default + 'static> Persistent<'_, M> {
    /// The memory, between one call and the next.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) while a call is under way.
    pub fn memory(&self) -> Result<&M> {
        self.check_idle()?;
        Ok(&self.memory)
    }

    /// The memory, to be filled for the next call.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) while a call is under way.
    pub fn memory_mut(&mut self) -> Result<&mut M> {
        self.check_idle()?;
        Ok(&mut self.memory)
    }

    /// Makes the call, and waits for it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) while a call is under way, or when buffers have been exchanged for others of another
    /// length; and those of the blocking call.
    pub fn run(&mut self) -> Result<()> {
        self.check_idle()?;
        (self.run)(self.communicator, &self.call, &mut self.memory)
    }

    /// Starts the call.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) as for [`run`](Self::run).
    pub fn start(&mut self) -> Result<()> {
        self.check_idle()?;
        let start = (self.start)(self.communicator, &self.call, &mut self.memory)?;
        self.under_way = Some(Operation::start(self.communicator.job(), Ok(start)));
        Ok(())
    }

    /// Waits for the call that was started last; at once if there is none under way.
    ///
    /// # Errors
    ///
    /// Those of the blocking call.
    pub fn wait(&mut self) -> Result<()> {
        let job = self.communicator.job();
        self.under_way.take().map_or(Ok(()), |operation| operation.wait(job))
    }

    /// Whether the call that was started last has ended: the next [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn test(&self) -> bool {
        let key = self.under_way.as_ref().and_then(Operation::key);
        key.is_none_or(|key| self.communicator.job().shared().test(key))
    }

    fn check_idle(&self) -> Result<()> {
        if self.under_way.is_none() {
            return Ok(());
        }
        Err(Error::Misuse("the persistent call is under way: wait for it first".into()))
    }
}

impl<M: Send + Default + 'static> Drop for Persistent<'_, M> {
    /// A call that is under way completes for the others; its memory is freed after it.
    fn drop(&mut self) {
        if let Some(Operation::UnderWay(key, conclude)) = self.under_way.take() {
            let memory = std::mem::take(&mut self.memory);
            self.communicator.job().shared().detach(key, Box::new((memory, conclude)));
        }
    }
}

impl<M: Send + Default + 'static> fmt::Debug for Persistent<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, under_way, .. } = self;
        f.debug_struct("Persistent")
            .field("call", &call.signature.collective)
            .field("under_way", &under_way.is_some())
            .finish_non_exhaustive()
    }
}

/// Calls set up for many iterations. Setting up is no call: nothing is sent.
impl Communicator {
    /// Sets up a [`broadcast`](Self::broadcast).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank.
    pub fn broadcast_init<T: Element>(
        &self,
        buffer: Buffer<T>,
        root: Rank,
    ) -> Result<Persistent<'_, Buffer<T>>> {
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
    ) -> Result<Persistent<'_, Buffer<T>>> {
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
    ) -> Result<Persistent<'_, Buffer<T>>> {
        Ok(self.in_place(self.reduce_call(buffer.len(), root, &reduction)?, buffer))
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
    ) -> Result<Persistent<'_, (Buffer<T>, Buffer<T>)>> {
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
    ) -> Result<Persistent<'_, (Buffer<T>, Buffer<T>)>> {
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
    ) -> Result<Persistent<'_, (Buffer<T>, Buffer<T>)>> {
        let call = self.all_to_all_call::<T>(self.share_of(source.len())?)?;
        Ok(self.between(call, source, destination))
    }

    fn in_place<T: Element>(&self, call: Collective, memory: Buffer<T>) -> Persistent<'_, Buffer<T>> {
        Persistent {
            communicator: self,
            call,
            memory,
            run: |communicator, call, buffer| {
                call.check_whole(buffer.len())?;
                communicator.call(call, buffer)
            },
            start: |communicator, call, buffer| {
                call.check_whole(buffer.len())?;
                Ok(communicator.start_in_place(call.clone(), buffer.target()))
            },
            under_way: None,
        }
    }

    fn between<T: Element>(
        &self,
        call: Collective,
        source: Buffer<T>,
        destination: Buffer<T>,
    ) -> Persistent<'_, (Buffer<T>, Buffer<T>)> {
        Persistent {
            communicator: self,
            call,
            memory: (source, destination),
            run: |communicator, call, (source, destination)| {
                communicator.call_into(call, source, destination)
            },
            start: |communicator, call, (source, destination)| {
                communicator.start_into(call.clone(), source, destination.target())
            },
            under_way: None,
        }
    }
}
