//! The memory of windows: a rank's own part, and peers' parts that are mapped here.

use super::Environment;
use super::host::Surroundings;
use crate::buffer::{Exposed, is_child};
use crate::communicator::Communicator;
use crate::driver::Core;
use crate::engine::{GroupId, Port, Process};
use crate::job::Job;
use crate::{Element, Error, Rank, Result};
use gradwire_schema::{CallSignature, Datatype};
use gradwire_transport::{Region, RegionKey, RemoteRegion};
use std::sync::Arc;

/// This rank's part of a window. Peers no longer reach it once it is dropped: those who have mapped it write into pages
/// that nobody reads.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) memory: Arc<Exposed>,
    job: Arc<Job>,
    /// Where the memory comes from, and the key by which peers map it; `None` where no peer can.
    shared: Option<(usize, Region, RegionKey)>,
}

/// The part of a peer, mapped here.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) memory: Exposed,
    process: Process,
    region: RemoteRegion,
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some((carrier, region, _)) = self.shared
            && !is_child()
        {
            self.job.shared().lock().wires.carriers[carrier].transport.deregister(region);
        }
    }
}

impl Part {
    /// Zeros, in memory that peers map if there is a peer that can.
    pub(crate) fn new(communicator: &Communicator, datatype: Datatype, count: usize) -> Result<Self> {
        let refused = || {
            let elements = datatype.name();
            Error::System(format!("there is no memory for a window of {count} {elements}").into())
        };
        let len = Exposed::len_of(datatype, count).ok_or_else(refused)?;
        let job = communicator.job().clone();
        let mut core = job.shared().lock();
        let carrier = core.wires.direct_carrier().filter(|carrier| {
            let leads_there = |process: &Process| leads(&core, *process, *carrier);
            communicator.members().iter().any(leads_there)
        });
        let Some(carrier) = carrier else {
            drop(core);
            let memory = Exposed::private(datatype, count).ok_or_else(refused)?;
            return Ok(Self { memory: Arc::new(memory), job, shared: None });
        };
        let transport = &mut core.wires.carriers[carrier].transport;
        let (region, allocation) = transport.allocate(len).map_err(|error| {
            Error::System(format!("{len} bytes of shared memory are refused: {error}").into())
        })?;
        let key = transport.export(region);
        let (Some(memory), Some(key)) = (Exposed::allocated(datatype, count, allocation), key) else {
            transport.deregister(region);
            return Err(refused());
        };
        drop(core);
        Ok(Self { memory: Arc::new(memory), job, shared: Some((carrier, region, key)) })
    }

    /// What peers need to map the memory.
    pub(crate) fn key(&self) -> Option<RegionKey> {
        self.shared.map(|(_, _, key)| key)
    }

    /// Lends this rank's elements to `program`, between two fences: no rank reaches for any part in between.
    pub(crate) fn lend<T: Element, R>(&mut self, id: GroupId, program: impl FnOnce(&mut [T]) -> R) -> R {
        let _lent = Lent::new(&self.job, id);
        // SAFETY: the first fence has ended all accesses of all ranks, and happens before this; what ranks do next is the second
        // fence, after this. The engine was just told, under the lock under which it works, to refuse whatever comes in spite
        // of that. The window is borrowed mutably, so this thread has no other way to its memory, nor has another thread.
        let elements = unsafe { self.memory.slice_mut() };
        program(elements)
    }
}

/// Tells the engine that the memory is in use, until it is dropped, also by a panic.
struct Lent<'a> {
    job: &'a Job,
    id: GroupId,
}

impl<'a> Lent<'a> {
    fn new(job: &'a Job, id: GroupId) -> Self {
        let lent = Self { job, id };
        lent.set(true);
        lent
    }

    fn set(&self, lent: bool) {
        if let Some(window) = self.job.shared().lock().engine.window(self.id) {
            window.set_lent(lent);
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.set(false);
    }
}

impl View {
    /// Maps the part of a rank, if it can be mapped: else it is reached by messages.
    ///
    /// # Errors
    ///
    /// Why the communicator has ended, if it has.
    pub(crate) fn new(
        communicator: &Communicator,
        rank: Rank,
        key: &RegionKey,
        datatype: Datatype,
        count: usize,
    ) -> Result<Option<Self>> {
        let process = communicator.members()[rank];
        {
            let core = communicator.job().shared().lock();
            if !core.wires.direct_carrier().is_some_and(|carrier| leads(&core, process, carrier)) {
                return Ok(None);
            }
        }
        let call = CallSignature::new(gradwire_schema::Collective::CreateWindow);
        let counted = communicator.uncounted(call);
        let mut surroundings = Surroundings { communicator, counted: &counted };
        let (region, mapping) = match surroundings.import(rank, key) {
            Ok(imported) => imported,
            Err(_) if !communicator.has_ended(counted.sequence) => return Ok(None),
            Err(error) => return Err(error),
        };
        // SAFETY: the mapping is page-aligned and stays valid until `release`, which consumes the view. Its owner allocated it
        // for its part of this window: all members make theirs in the same call.
        let memory = unsafe { Exposed::mapped(datatype, count, mapping) };
        if memory.is_none() {
            surroundings.release(rank, region);
        }
        Ok(memory.map(|memory| Self { memory, process, region }))
    }

    /// Gives the mapping back.
    pub(crate) fn release(self, job: &Job) {
        let Self { memory, process, region } = self;
        drop(memory);
        job.shared().lock().wires.release(process, region);
    }
}

fn leads(core: &Core, process: Process, carrier: usize) -> bool {
    core.wires.route(process).is_some_and(|route| route.carrier == carrier)
}
