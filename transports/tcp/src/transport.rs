//! [`Tcp`], and what can be asked of it. How it moves is in `progress`.

use crate::address::{Boot, Endpoint, EndpointId};
use crate::dial::{Dial, Shared};
use crate::door::Door;
use crate::handshake::Identity;
use crate::listen::Listeners;
use crate::outgoing::{Outbound, Outgoing};
use crate::peers::{Entry, Peers, State};
use crate::poll::{Poll, Ready, Source};
use crate::random::Nonces;
use crate::{BindError, TcpConfig};
use gradwire_transport::region::{Regions, RemoteRegions};
use gradwire_transport::{
    Activity, Address, Allocation, Capabilities, ConnectError, Event, Events, FailReason, ImportError,
    Limits, Linger, Memory, Peer, Posted, Put, Region, RegionKey, RegisterError, RemoteRegion, Tag, Token,
    Transport, TransportError,
};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use std::time::{Duration, Instant};

pub(crate) static LIMITS: Limits = {
    let mut limits = Limits::MODEST;
    limits.send = 64 << 10;
    // An announced message of this length takes 1.25 times as long there and back as one that is sent at once, and 0.88 times
    // in a burst; at 64 KiB it takes half as long. Of longer ones a burst does not fit into what a receiver keeps.
    limits.eager = 32 << 10;
    limits.put = 1 << 30;
    limits.inline = 1 << 10;
    limits.outstanding = Outgoing::PUTS;
    limits.latency = Duration::from_micros(15);
    limits.bandwidth = 2.5e9;
    limits
};

/// One endpoint: its listeners, its peers and their connections. See the crate's head.
#[derive(Debug)]
pub struct Tcp {
    pub(crate) shared: Shared,
    pub(crate) door: Door,
    pub(crate) peers: Peers,
    pub(crate) regions: Regions,
    /// Happened outside of `progress`; to be told by the next one.
    pub(crate) reports: Vec<Event>,
    /// Slots with output for their sockets. No slot stands there twice.
    pub(crate) pending: Vec<u32>,
    pub(crate) timers: Timers,
    /// Scratch memory of `progress`.
    pub(crate) ready: Vec<Ready>,
    pub(crate) done: Vec<Token>,
    here: Endpoint,
    remotes: RemoteRegions,
    nonces: Nonces,
    /// A fork's copy of this object has nothing to say to our peers.
    owner: Pid,
}

/// When `progress` has to do what no descriptor tells.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// The earliest of all deadlines, or some time before it.
    pub(crate) next: Option<Instant>,
    /// Something was begun for which there is no deadline yet.
    pub(crate) stale: bool,
    pub(crate) last_progress: Option<Instant>,
    /// Turns without a look at the poll set.
    pub(crate) unseen: u32,
    /// The next turn is to look at the poll set: the caller was about to sleep on it, or somebody is on the way.
    pub(crate) watchful: bool,
    /// Somebody stands at the door, or a peer is on its way in or out.
    pub(crate) unsettled: bool,
}

impl Tcp {
    /// Opens listeners as `config` says.
    ///
    /// # Errors
    ///
    /// [`BindError`], which says what is in the way and what to do about it.
    pub fn new(config: TcpConfig) -> Result<Self, BindError> {
        let listeners = Listeners::bind(&config)?;
        let mut id = [0; 16];
        let no_random = |error: getrandom::Error| {
            BindError::system("getrandom", error.raw_os_error().unwrap_or_default())
        };
        getrandom::fill(&mut id).map_err(no_random)?;
        let here =
            Endpoint { id: EndpointId(id), boot: Boot::current(), candidates: listeners.candidates.clone() };
        let shared = Shared {
            identity: Identity::new(here.id, config.secret),
            poll: Poll::new().map_err(|errno| BindError::system("epoll_create1", errno.raw_os_error()))?,
            config,
        };
        let door = Door::new(listeners, &shared)
            .map_err(|errno| BindError::system("epoll_ctl", errno.raw_os_error()))?;
        tracing::debug!(id = ?here.id, listening = ?here.candidates, "tcp endpoint open");
        if shared.config.secret.is_none() {
            tracing::info!("tcp connections are not authenticated: there is no job secret");
        }
        Ok(Self {
            shared,
            door,
            peers: Peers::default(),
            regions: Regions::new(),
            reports: Vec::new(),
            pending: Vec::new(),
            timers: Timers::default(),
            ready: Vec::new(),
            done: Vec::new(),
            here,
            remotes: RemoteRegions::new(),
            nonces: Nonces::new().map_err(no_random)?,
            owner: getpid(),
        })
    }
}

impl Transport for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ORDERED | Capabilities::REGISTER | Capabilities::ALLOCATE | Capabilities::REVOKE
    }

    fn limits(&self) -> &Limits {
        &LIMITS
    }

    fn address(&self) -> Address {
        self.here.encode()
    }

    fn connect(&mut self, peer: Peer, address: &Address) -> Result<(), ConnectError> {
        let there = Endpoint::decode(address).map_err(ConnectError::BadAddress)?;
        if there.id == self.here.id {
            return Err(ConnectError::SelfConnect);
        }
        if self.peers.is_known(peer) {
            return Err(ConnectError::PeerReused);
        }
        if self.peers.slot_of_endpoint(there.id).is_some() {
            return Err(ConnectError::BadAddress("its endpoint is connected under another name"));
        }
        let candidates = there.reachable_from(&self.here);
        if candidates.is_empty() {
            return Err(ConnectError::Unreachable { code: Errno::AFNOSUPPORT.raw_os_error() });
        }
        // Both sides were told of each other; the lesser id calls.
        let state = if self.here.id < there.id {
            let mut dial = Dial::new(there.id, candidates, Source::Peer(self.peers.free_slot()));
            let refused = |errno: Errno| ConnectError::System {
                context: "socket (raise the limit of descriptors with `ulimit -n`)",
                code: errno.raw_os_error(),
            };
            dial.start(&self.shared).map_err(refused)?;
            State::Dialling(Box::new(dial))
        } else {
            State::Awaiting { deadline: None, refused: None }
        };
        self.peers.insert(Entry { name: peer, id: there.id, state });
        self.timers.stale = true;
        Ok(())
    }

    fn disconnect(&mut self, peer: Peer, linger: Linger) {
        let Some(slot) = self.peers.slot_of(peer) else { return };
        let flush = linger == Linger::Flush;
        if flush && self.peers.get_mut(slot).is_some_and(|entry| entry.state.begin_closing()) {
            self.note_output(slot);
            self.timers.stale = true;
            return;
        }
        if let Some(mut entry) = self.peers.leave(slot)
            && let Some(connection) = entry.state.connection_mut()
        {
            connection.close();
            let failed = connection.outgoing.abandon();
            self.reports.extend(failed.map(|token| Event::Failed(token, FailReason::PeerLost)));
        }
    }

    fn register(&mut self, memory: &Memory) -> Result<Region, RegisterError> {
        self.regions.insert(memory)
    }

    fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError> {
        self.regions.allocate(len)
    }

    fn deregister(&mut self, region: Region) {
        let mut failed = Vec::new();
        for connection in self.peers.entries_mut().filter_map(|entry| entry.state.connection_mut()) {
            connection.outgoing.revoke(region, &mut failed);
        }
        self.reports.extend(failed.into_iter().map(|token| Event::Failed(token, FailReason::Revoked)));
        self.regions.remove(region);
    }

    fn export(&mut self, region: Region) -> Option<RegionKey> {
        self.regions.export(region, || self.nonces.next())
    }

    fn import(&mut self, peer: Peer, key: &RegionKey) -> Result<RemoteRegion, ImportError> {
        match self.peers.open_mut(peer) {
            Ok(Some(_)) => self.remotes.import(peer, key),
            Ok(None) | Err(_) => Err(ImportError::NotConnected),
        }
    }

    fn release(&mut self, region: RemoteRegion) {
        self.remotes.release(region);
    }

    fn send(&mut self, peer: Peer, tag: Tag, bytes: &[u8]) -> Result<Posted, TransportError> {
        if bytes.len() > LIMITS.send {
            return Err(TransportError::TooLong { len: bytes.len(), max: LIMITS.send });
        }
        let Some((slot, connection)) = self.peers.open_mut(peer)? else { return Ok(Posted::Full) };
        let posted = connection.outgoing.message(tag, bytes);
        self.note_output(slot);
        Ok(posted)
    }

    fn put(&mut self, put: &Put) -> Result<Posted, TransportError> {
        if put.len > LIMITS.put {
            return Err(TransportError::TooLong { len: put.len, max: LIMITS.put });
        }
        let remote = *self.remotes.locate(put.target, put.target_offset, put.len)?;
        self.regions.check(put.source, put.source_offset, put.len)?;
        let Some((slot, connection)) = self.peers.open_mut(remote.peer)? else { return Ok(Posted::Full) };
        let outbound = Outbound {
            token: put.token,
            source: put.source,
            source_offset: put.source_offset,
            len: put.len,
            key: remote.key,
            target_offset: put.target_offset as u64,
            notice: put.notice,
        };
        let posted = connection.outgoing.put(&outbound, &self.regions);
        self.note_output(slot);
        Ok(posted)
    }

    fn progress(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        self.advance(now, events)
    }

    fn has_output(&self) -> bool {
        self.peers.have_output()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.timers.stale { self.timers.last_progress } else { self.timers.next }
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.poll.as_fd())
    }

    fn prepare_sleep(&mut self) -> bool {
        if self.timers.stale || !self.reports.is_empty() {
            return false;
        }
        self.timers.watchful = true;
        self.watch_waiting()
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        if getpid() != self.owner {
            return;
        }
        for connection in self.peers.entries_mut().filter_map(|entry| entry.state.connection_mut()) {
            connection.close();
        }
    }
}
