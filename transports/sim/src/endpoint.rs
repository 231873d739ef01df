//! The transport: what is asked of it. What comes of it is in `progress.rs`.

use crate::address::{self, NodeIndex};
use crate::atomic;
use crate::network::Shared;
use crate::parcel::{ConnectionId, Credit};
use crate::peer::{PeerState, Stage};
use gradwire_transport::region::{Regions, RemoteRegions};
use gradwire_transport::{
    Activity, Address, Allocation, Atomic, Capabilities, ConnectError, Event, Events, Get, ImportError,
    Limits, Linger, Memory, Peer, Posted, Put, Region, RegionKey, RegisterError, RemoteRegion, Tag, Token,
    Transport, TransportError,
};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One endpoint of a [`Network`](crate::Network): the transport of one simulated process.
#[derive(Debug)]
pub struct Sim {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: NodeIndex,
    pub(crate) secret: u64,
    pub(crate) limits: Limits,
    pub(crate) connect_timeout: Duration,
    pub(crate) silence: Duration,
    pub(crate) regions: Regions,
    pub(crate) remotes: RemoteRegions,
    /// Every name ever used, so that none is used twice.
    pub(crate) peers: BTreeMap<Peer, PeerState>,
    /// Hellos of nodes that we have not been told to connect to, or not again.
    pub(crate) greetings: BTreeMap<NodeIndex, VecDeque<ConnectionId>>,
    /// Waits for the port.
    pub(crate) queue: VecDeque<Outgoing>,
    /// Puts that have left, and when their last byte does.
    pub(crate) departed: VecDeque<Departed>,
    /// Gets and atomics whose reply has not come.
    pub(crate) requests: BTreeMap<u64, Request>,
    pub(crate) next_request: u64,
    /// To be reported by the next `progress`.
    pub(crate) reports: Vec<Event>,
    /// The time of the last `progress`.
    pub(crate) now: Option<Instant>,
    pub(crate) bell: OnceLock<Option<UnixStream>>,
}

/// What waits for the port.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) peer: Peer,
    pub(crate) item: Item,
    /// Held until the other side has dealt with it.
    pub(crate) credit: Option<Credit>,
}

#[derive(Debug)]
pub(crate) enum Item {
    Hello,
    Bye,
    Reset,
    Message { tag: Tag, bytes: Vec<u8> },
    Put { put: Put, key: RegionKey },
    Get { get: Get, key: RegionKey },
    Atomic { atomic: Atomic, key: RegionKey },
    Reply { request: u64, bytes: Option<Vec<u8>> },
}

impl Item {
    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Self::Put { put, .. } => Some(put.token),
            Self::Get { get, .. } => Some(get.token),
            Self::Atomic { atomic, .. } => Some(atomic.token),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Departed {
    pub(crate) peer: Peer,
    pub(crate) token: Token,
    pub(crate) at: Instant,
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) peer: Peer,
    pub(crate) token: Token,
    pub(crate) target: Region,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Sim {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: NodeIndex,
        secret: u64,
        limits: Limits,
        connect_timeout: Duration,
        silence: Duration,
    ) -> Self {
        Self {
            shared,
            index,
            secret,
            limits,
            connect_timeout,
            silence,
            regions: Regions::new(),
            remotes: RemoteRegions::new(),
            peers: BTreeMap::new(),
            greetings: BTreeMap::new(),
            queue: VecDeque::new(),
            departed: VecDeque::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            reports: Vec::new(),
            now: None,
            bell: OnceLock::new(),
        }
    }

    pub(crate) fn enqueue(&mut self, peer: Peer, item: Item, credit: Option<Credit>) {
        self.queue.push_back(Outgoing { peer, item, credit });
        self.shared.wires().nodes[self.index as usize].planned = self.now;
    }

    /// Room for an operation to `peer`; `None` for now.
    fn admit(&mut self, peer: Peer) -> Result<Option<Credit>, TransportError> {
        self.check_alive()?;
        let state = self.peers.get_mut(&peer).ok_or(TransportError::NotConnected)?;
        match state.stage {
            Stage::Lost => Err(TransportError::PeerLost),
            Stage::Disconnected => Err(TransportError::NotConnected),
            Stage::Connecting { .. } | Stage::Connected => Ok(state.take_credit(self.limits.outstanding)),
        }
    }

    /// Checks both ranges, and posts what `item` makes of the remote region's key.
    fn post(
        &mut self,
        len: usize,
        (local, local_offset, local_len): (Region, usize, usize),
        (remote, remote_offset): (RemoteRegion, usize),
        item: impl FnOnce(RegionKey) -> Item,
    ) -> Result<Posted, TransportError> {
        if len > self.limits.put {
            return Err(TransportError::TooLong { len, max: self.limits.put });
        }
        self.regions.check(local, local_offset, local_len)?;
        let (peer, key) = {
            let remote = self.remotes.locate(remote, remote_offset, len)?;
            (remote.peer, remote.key)
        };
        let Some(credit) = self.admit(peer)? else { return Ok(Posted::Full) };
        self.enqueue(peer, item(key), Some(credit));
        Ok(Posted::Queued)
    }

    pub(crate) fn check_alive(&self) -> Result<(), TransportError> {
        if self.shared.wires().is_alive(self.index) {
            return Ok(());
        }
        Err(TransportError::System { context: "this process of the simulation was killed", code: 0 })
    }
}

impl Transport for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER
            | Capabilities::ALLOCATE
            | Capabilities::GET
            | Capabilities::ATOMIC
            | Capabilities::REVOKE
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn address(&self) -> Address {
        address::encode(self.shared.number, self.index)
    }

    fn connect(&mut self, peer: Peer, address: &Address) -> Result<(), ConnectError> {
        let node = address::decode(self.shared.number, address)?;
        if node == self.index {
            return Err(ConnectError::SelfConnect);
        }
        if self.peers.contains_key(&peer) {
            return Err(ConnectError::PeerReused);
        }
        let own = {
            let mut wires = self.shared.wires();
            if wires.nodes.len() <= node as usize {
                return Err(ConnectError::BadAddress("no such endpoint"));
            }
            wires.next_connection()
        };
        let remote = self.greetings.get_mut(&node).and_then(VecDeque::pop_front);
        self.peers.insert(peer, PeerState::connecting(node, own, remote));
        self.enqueue(peer, Item::Hello, None);
        Ok(())
    }

    fn disconnect(&mut self, peer: Peer, linger: Linger) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.is_live()) else { return };
        state.stage = Stage::Disconnected;
        self.abandon(peer, linger);
        self.enqueue(peer, Item::Bye, None);
    }

    fn register(&mut self, memory: &Memory) -> Result<Region, RegisterError> {
        self.regions.insert(memory)
    }

    fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError> {
        self.regions.allocate(len)
    }

    fn deregister(&mut self, region: Region) {
        // Whatever is under way finds the region gone when it wants to touch it.
        self.regions.remove(region);
    }

    fn export(&mut self, region: Region) -> Option<RegionKey> {
        let mut wires = self.shared.wires();
        let random = &mut wires.nodes[self.index as usize].random;
        self.regions.export(region, || random.next())
    }

    fn import(&mut self, peer: Peer, key: &RegionKey) -> Result<RemoteRegion, ImportError> {
        match self.peers.get(&peer) {
            Some(state) if state.stage == Stage::Connected => self.remotes.import(peer, key),
            _ => Err(ImportError::NotConnected),
        }
    }

    fn release(&mut self, region: RemoteRegion) {
        self.remotes.release(region);
    }

    fn send(&mut self, peer: Peer, tag: Tag, bytes: &[u8]) -> Result<Posted, TransportError> {
        if bytes.len() > self.limits.send {
            return Err(TransportError::TooLong { len: bytes.len(), max: self.limits.send });
        }
        let Some(credit) = self.admit(peer)? else { return Ok(Posted::Full) };
        self.enqueue(peer, Item::Message { tag, bytes: bytes.to_vec() }, Some(credit));
        Ok(Posted::Queued)
    }

    fn put(&mut self, put: &Put) -> Result<Posted, TransportError> {
        let source = (put.source, put.source_offset, put.len);
        self.post(put.len, source, (put.target, put.target_offset), |key| Item::Put { put: *put, key })
    }

    fn get(&mut self, get: &Get) -> Result<Posted, TransportError> {
        let target = (get.target, get.target_offset, get.len);
        self.post(get.len, target, (get.source, get.source_offset), |key| Item::Get { get: *get, key })
    }

    fn atomic(&mut self, atomic: &Atomic) -> Result<Posted, TransportError> {
        let len = atomic::size(atomic.kind);
        if !atomic.target_offset.is_multiple_of(len) {
            return Err(TransportError::OutOfRange { offset: atomic.target_offset, len, region_len: 0 });
        }
        let fetched = (atomic.fetched, atomic.fetched_offset, len);
        self.post(len, fetched, (atomic.target, atomic.target_offset), |key| Item::Atomic {
            atomic: *atomic,
            key,
        })
    }

    fn progress(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        self.turn(now, events)
    }

    fn has_output(&self) -> bool {
        !self.queue.is_empty()
    }

    fn deadline(&self) -> Option<Instant> {
        self.shared.wires().nodes[self.index as usize].deadline()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.bell.get_or_init(|| self.shared.hang_bell(self.index)).as_ref().map(AsFd::as_fd)
    }

    fn prepare_sleep(&mut self) -> bool {
        self.shared.wires().nodes[self.index as usize].fall_asleep()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.shared.wires().kill(self.index);
    }
}
