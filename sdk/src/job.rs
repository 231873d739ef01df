//! A job: the processes, what leads to each, and the driver that serves all their communicators.

use crate::buffer::Buffer;
use crate::communicator::Communicator;
use crate::driver::{Core, Driver, Ledger, Shared, Wires};
use crate::engine::{Calls, Engine, GroupId, Process};
use crate::plan::Shape;
use crate::select::{Selector, Tuning, explain};
use crate::{Element, Error, Rank, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The communicator of all processes.
const WORLD: GroupId = GroupId(0);

/// What is known of a process.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The name of its host, for messages.
    pub(crate) host: Arc<str>,
    /// Processes with the same number share memory or, where nobody tried, the host's name.
    pub(crate) node: usize,
}

/// What a job is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) own: Process,
    pub(crate) places: Vec<Place>,
    pub(crate) wires: Wires,
    pub(crate) timeout: Duration,
    pub(crate) tuning: Tuning,
    /// Ranks share cores.
    pub(crate) crowded: bool,
}

/// The job, as this process sees it. Lives as long as a communicator or a handle does.
#[derive(Debug)]
pub(crate) struct Job {
    own: Process,
    places: Vec<Place>,
    paths: Vec<&'static str>,
    selector: Arc<Selector>,
    timeout: Duration,
    ledger: Arc<Ledger>,
    driver: Driver,
}

impl Job {
    pub(crate) fn new(parts: Parts) -> Result<Arc<Self>> {
        let Parts { own, places, wires, timeout, tuning, crowded } = parts;
        let paths = (0..places.len() as Process).map(|process| wires.name_of(process)).collect();
        let selector = Arc::new(Selector { links: wires.links(), tuning });
        let ledger = wires.ledger.clone();
        let engine =
            Engine::new(own, places.iter().map(|place| place.host.clone()).collect(), Instant::now());
        let alone = places.len() == 1;
        let driver = Driver::new(Core::new(engine, wires), crowded, !alone)?;
        Ok(Arc::new(Self { own, places, paths, selector, timeout, ledger, driver }))
    }

    /// A job of one process.
    pub(crate) fn single() -> Result<Arc<Self>> {
        let host = rustix::system::uname().nodename().to_string_lossy().into();
        Self::new(Parts {
            own: 0,
            places: vec![Place { host, node: 0 }],
            wires: Wires::new(1),
            timeout: Duration::from_secs(300),
            tuning: Tuning::default(),
            crowded: false,
        })
    }

    /// The communicator of all processes. Made once.
    pub(crate) fn world(self: Arc<Self>) -> Result<Communicator> {
        let members: Arc<[Process]> = (0..self.places.len() as Process).collect();
        let rank = self.own as Rank;
        let timeout = Some(self.timeout);
        Communicator::new(self, WORLD, members, rank, timeout)
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.driver.shared()
    }

    pub(crate) fn host(&self, process: Process) -> &str {
        &self.places[process as usize].host
    }

    pub(crate) fn path(&self, process: Process) -> &'static str {
        self.paths[process as usize]
    }

    pub(crate) fn same_host(&self, a: Process, b: Process) -> bool {
        self.places[a as usize].node == self.places[b as usize].node
    }

    pub(crate) fn selector(&self) -> &Arc<Selector> {
        &self.selector
    }

    pub(crate) fn allocate<T: Element>(&self, count: usize) -> Result<Buffer<T>> {
        let mut core = self.shared().lock();
        let Some(carrier) = core.wires.direct_carrier().filter(|_| count > 0) else {
            drop(core);
            return Buffer::private(count);
        };
        let too_many =
            || Error::Misuse(format!("{count} elements are more than an address space holds").into());
        let len = count.checked_mul(size_of::<T>()).ok_or_else(too_many)?;
        let ledger = core.wires.ledger.clone();
        let (region, allocation) = core.wires.carriers[carrier].transport.allocate(len).map_err(|error| {
            Error::System(format!("{len} bytes of shared memory are refused: {error}").into())
        })?;
        if let Some(key) = core.wires.carriers[carrier].transport.export(region) {
            ledger.enter(&allocation, carrier, region, key);
        }
        Ok(Buffer::shared(allocation, carrier, region, count, ledger))
    }

    pub(crate) fn explain(&self, shape: &Shape) -> String {
        explain(shape, &self.selector.links, &self.selector.tuning)
    }

    pub(crate) fn add_group(&self, id: GroupId, members: Arc<[Process]>, rank: Rank, calls: Arc<Calls>) {
        let mut core = self.shared().lock();
        let Core { engine, wires, .. } = &mut *core;
        engine.add_group(id, members, rank, calls, wires);
        core.collect();
        self.shared().hand_on(&mut core);
    }

    pub(crate) fn remove_group(&self, id: GroupId) {
        let mut core = self.shared().lock();
        let Core { engine, wires, .. } = &mut *core;
        engine.remove_group(id, wires);
        core.collect();
        self.shared().hand_on(&mut core);
    }

    pub(crate) fn abort(&self, reason: &str) {
        let mut core = self.shared().lock();
        let Core { engine, wires, .. } = &mut *core;
        engine.abort(reason, wires);
        core.collect();
        drop(core);
        self.shared().nudge();
    }
}
