//! All transports of the process, and which of them leads to whom.

use super::ledger::Ledger;
use crate::buffer::Span;
use crate::direct::SystemProcess;
use crate::engine::{Port, Process, Sent, Staging};
use crate::plan::Links;
use gradwire_schema::FrameHeader;
use gradwire_transport::{
    Allocation, Capabilities, Direct, ImportError, Limits, Linger, Peer, Posted, Put, Region, RegionKey,
    RegisterError, RemoteRegion, Tag, Transport, TransportError,
};
use rustc_hash::FxHashMap as HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Everything is told apart by frame headers: transports need no label.
const TAG: Tag = Tag(0);

/// A transport with the library memory it lends.
#[derive(Debug)]
pub(crate) struct Carrier {
    pub(crate) transport: Box<dyn Transport>,
    processes: HashMap<Peer, Process>,
    blocks: HashMap<Region, Allocation>,
    /// Blocks that may be lent again, by length.
    idle: HashMap<usize, Vec<Staging>>,
}

/// Where a process is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    pub(crate) carrier: usize,
    pub(crate) peer: Peer,
}

/// How fast transports are, nominally.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pace {
    pub(crate) latency: Duration,
    /// Bytes per second in one direction.
    pub(crate) bandwidth: f64,
}

impl Pace {
    pub(crate) fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let nanoseconds = u64::try_from(self.latency.as_nanos()).unwrap_or(u64::MAX);
        bytes[..8].copy_from_slice(&nanoseconds.to_le_bytes());
        bytes[8..].copy_from_slice(&self.bandwidth.to_le_bytes());
        bytes
    }

    /// `None`: no pace that anything could have.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (latency, bandwidth) = bytes.split_first_chunk()?;
        let bandwidth = f64::from_le_bytes(bandwidth.try_into().ok()?);
        let is_possible = bandwidth.is_finite() && bandwidth > 0.0;
        is_possible.then_some(Self { latency: Duration::from_nanos(u64::from_le_bytes(*latency)), bandwidth })
    }

    /// The worse of both in each respect.
    pub(crate) fn slower(self, other: Self) -> Self {
        Self { latency: self.latency.max(other.latency), bandwidth: self.bandwidth.min(other.bandwidth) }
    }
}

/// All transports.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    pub(crate) carriers: Vec<Carrier>,
    /// By process; `None` for ourselves. A route outlives the connection: regions are given back through it.
    routes: Vec<Option<Route>>,
    peers: u32,
    /// What the system calls the processes that let this one read their memory, and read this one's.
    readable: HashMap<Process, SystemProcess>,
    pace: Option<Pace>,
    /// The memory of users' buffers.
    pub(crate) ledger: Arc<Ledger>,
}

impl Wires {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            carriers: Vec::new(),
            routes: vec![None; processes],
            peers: 0,
            readable: HashMap::default(),
            pace: None,
            ledger: Arc::default(),
        }
    }

    pub(crate) fn add(&mut self, transport: Box<dyn Transport>) -> usize {
        let carrier = Carrier {
            transport,
            processes: HashMap::default(),
            blocks: HashMap::default(),
            idle: HashMap::default(),
        };
        self.carriers.push(carrier);
        self.carriers.len() - 1
    }

    /// A name for a process on a transport, never used before.
    pub(crate) fn name(&mut self, carrier: usize, process: Process) -> Peer {
        self.peers += 1;
        let peer = Peer::new(process, self.peers);
        self.carriers[carrier].processes.insert(peer, process);
        peer
    }

    /// Leads to a process by this route from now on.
    pub(crate) fn set_route(&mut self, process: Process, route: Option<Route>) {
        if let Some(slot) = self.routes.get_mut(process as usize) {
            *slot = route;
        }
    }

    pub(crate) fn route(&self, process: Process) -> Option<Route> {
        self.routes.get(process as usize).copied().flatten()
    }

    pub(crate) fn process(&self, carrier: usize, peer: Peer) -> Option<Process> {
        self.carriers.get(carrier)?.processes.get(&peer).copied()
    }

    /// This process and another one were found to be able to read each other's memory.
    pub(crate) fn set_readable(&mut self, process: Process, system: SystemProcess) {
        self.readable.insert(process, system);
    }

    /// What leads to a process: `shm`, `tcp`, ...
    pub(crate) fn name_of(&self, process: Process) -> &'static str {
        self.route(process).map_or("self", |route| self.carriers[route.carrier].transport.name())
    }

    /// The carrier whose memory peers map, if there is one.
    pub(crate) fn direct_carrier(&self) -> Option<usize> {
        self.carriers
            .iter()
            .position(|carrier| carrier.transport.capabilities().contains(Capabilities::DIRECT))
    }

    /// The mapping of a region of a process.
    pub(crate) fn direct(&self, process: Process, region: RemoteRegion) -> Option<Direct> {
        self.carriers.get(self.route(process)?.carrier)?.transport.direct(region)
    }

    /// Frees the memory of buffers that were dropped.
    pub(crate) fn take_returns(&mut self) {
        for (carrier, region, allocation) in self.ledger.take_returns() {
            if let Some(carrier) = self.carriers.get_mut(carrier) {
                carrier.transport.deregister(region);
            }
            drop(allocation);
        }
    }

    /// What the slowest transport of this process promises, which decides what a collective over all of them costs: latency, and
    /// bytes per second.
    pub(crate) fn slowest(&self) -> Pace {
        let limits = self.carriers.iter().map(|carrier| carrier.transport.limits());
        let slowest = limits.max_by_key(|limits| limits.latency).unwrap_or(&Limits::MODEST);
        Pace { latency: slowest.latency, bandwidth: slowest.bandwidth }
    }

    /// All processes have agreed on this, for one may have a transport that another lacks.
    pub(crate) fn set_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    /// The links of the cost model: nominal, and the same for all processes.
    pub(crate) fn links(&self) -> Links {
        let Pace { latency, bandwidth } = self.pace.unwrap_or_else(|| self.slowest());
        Links::new(latency, bandwidth)
    }

    /// Ends all connections in good order.
    pub(crate) fn disconnect_all(&mut self) {
        for process in 0..self.routes.len() as Process {
            if let Some(route) = self.route(process) {
                self.carriers[route.carrier].transport.disconnect(route.peer, Linger::Flush);
            }
        }
        self.routes.fill(None);
    }

    fn at(&mut self, process: Process) -> Option<(Peer, &mut Carrier)> {
        let route = self.route(process)?;
        Some((route.peer, self.carriers.get_mut(route.carrier)?))
    }
}

/// The loss of a peer is reported by an event; until it comes the engine may go on as if all went well.
fn taken(posted: Result<Posted, TransportError>) -> Sent {
    match posted {
        Ok(Posted::Full) => Sent::Full,
        Ok(Posted::Queued) => Sent::Taken,
        Err(error) => {
            tracing::debug!(%error, "not sent");
            Sent::Taken
        }
    }
}

impl Port for Wires {
    fn message_limit(&self, peer: Process) -> usize {
        self.route(peer).map_or(0, |route| self.carriers[route.carrier].transport.limits().send)
    }

    fn eager_limit(&self, peer: Process) -> usize {
        self.route(peer).map_or(0, |route| {
            let limits = self.carriers[route.carrier].transport.limits();
            limits.eager.min(limits.send.saturating_sub(FrameHeader::LEN))
        })
    }

    fn send(&mut self, peer: Process, bytes: &[u8]) -> Sent {
        self.at(peer).map_or(Sent::Taken, |(peer, carrier)| taken(carrier.transport.send(peer, TAG, bytes)))
    }

    fn register(&mut self, peer: Process, span: Span) -> Result<Region, RegisterError> {
        let (_, carrier) = self.at(peer).ok_or(RegisterError::Unsupported)?;
        carrier.transport.register(&span.memory())
    }

    fn export(&mut self, peer: Process, region: Region) -> Option<RegionKey> {
        let (_, carrier) = self.at(peer)?;
        let revocable = carrier.transport.capabilities().contains(Capabilities::REVOKE);
        if revocable { carrier.transport.export(region) } else { None }
    }

    fn deregister(&mut self, peer: Process, region: Region) {
        if let Some((_, carrier)) = self.at(peer) {
            carrier.transport.deregister(region);
        }
    }

    fn lend(&mut self, peer: Process, len: usize) -> Result<Staging, RegisterError> {
        let (_, carrier) = self.at(peer).ok_or(RegisterError::Unsupported)?;
        if let Some(staging) = carrier.idle.get_mut(&len).and_then(Vec::pop) {
            return Ok(staging);
        }
        let (region, allocation) = carrier.transport.allocate(len)?;
        let Some(key) = carrier.transport.export(region) else {
            carrier.transport.deregister(region);
            return Err(RegisterError::Unsupported);
        };
        let staging = Staging { region, key, span: Span::of_allocation(&allocation) };
        carrier.blocks.insert(region, allocation);
        Ok(staging)
    }

    fn reclaim(&mut self, peer: Process, staging: Staging, clean: bool) {
        let Some((_, carrier)) = self.at(peer) else { return };
        if clean {
            carrier.idle.entry(staging.span.len()).or_default().push(staging);
        } else {
            carrier.transport.deregister(staging.region);
            carrier.blocks.remove(&staging.region);
        }
    }

    fn import(&mut self, peer: Process, key: &RegionKey) -> Result<RemoteRegion, ImportError> {
        let (peer, carrier) = self.at(peer).ok_or(ImportError::NotConnected)?;
        carrier.transport.import(peer, key)
    }

    fn release(&mut self, peer: Process, region: RemoteRegion) {
        if let Some((_, carrier)) = self.at(peer) {
            carrier.transport.release(region);
        }
    }

    fn put(&mut self, peer: Process, put: &Put) -> Sent {
        self.at(peer).map_or(Sent::Taken, |(_, carrier)| taken(carrier.transport.put(put)))
    }

    fn can_read(&self, peer: Process) -> bool {
        self.readable.contains_key(&peer)
    }

    fn read(&mut self, peer: Process, address: u64, into: Span) -> bool {
        self.readable.get(&peer).is_some_and(|system| crate::direct::read(*system, address, into))
    }

    fn expel(&mut self, peer: Process) {
        if let Some((name, carrier)) = self.at(peer) {
            carrier.transport.disconnect(name, Linger::Drop);
        }
    }
}
