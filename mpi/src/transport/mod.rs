//! The [`Transport`] over an MPI library's point-to-point messages, for networks that only the vendor's MPI reaches.
//!
//! Each frame is one message of MPI, copied to memory of this side's own before MPI sees it and out of such memory when it has
//! come: MPI cannot be made to let go of memory, so that it never gets the caller's. A frame that carries something needs room
//! in the peer's window, since MPI itself would take any number of them and keep them somewhere.
//!
//! Whoever speaks on an MPI communicator belongs to the job: nobody has to prove it. That a process has died is for the MPI
//! library and its launcher to say, which mostly end the job; here it shows by its silence.

mod address;
mod envelope;
mod gate;
mod network;
mod peer;
mod progress;
mod wire;

use address::Place;
use gradwire_transport::frame::Frame;
use gradwire_transport::region::{Regions, RemoteRegions};
use gradwire_transport::{
    Activity, Address, Allocation, Capabilities, ConnectError, Event, Events, ImportError, Limits, Linger,
    Memory, Peer, Posted, Put, Region, RegionKey, RegisterError, RemoteRegion, Tag, Transport,
    TransportError,
};
pub use network::{Network, NetworkError};
use peer::{PeerState, Stage, WINDOW};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{Arrival, Trouble, Wire};

/// The steps of the handshake. The first: the sender wants to connect.
const HELLO: u32 = 1;
/// The sender's endpoint is gone, with all its connections.
const GONE: u32 = 2;
/// The receiver broke the protocol.
const RESET: u32 = 3;

/// One endpoint of a [`Network`].
#[derive(Debug)]
pub struct Mpi {
    network: Arc<Network>,
    here: Place,
    wire: Wire,
    limits: Limits,
    regions: Regions,
    remotes: RemoteRegions,
    /// Every name ever used, so that none is used twice.
    peers: BTreeMap<Peer, PeerState>,
    /// Connections of places that we have not been told to connect to, or not again.
    greetings: BTreeMap<Place, VecDeque<u64>>,
    connections: u64,
    /// Happened outside of `progress`; to be told by the next one.
    reports: Vec<Event>,
    /// The time of the last turn.
    now: Option<Instant>,
    /// Scratch memory of `progress`.
    arrived: Vec<Arrival>,
    /// How long to wait for a peer that does not connect.
    pub connect_timeout: Duration,
    /// How often a peer is told that we are here when there is nothing else to say.
    pub heartbeat: Duration,
    /// How long a peer may say nothing before it counts as lost.
    pub silence: Duration,
}

impl Mpi {
    fn new(network: Arc<Network>, here: Place) -> Self {
        let mut limits = Limits::MODEST;
        limits.put = 256 << 10;
        limits.outstanding = WINDOW as usize;
        limits.latency = Duration::from_micros(5);
        limits.bandwidth = 4e9;
        let longest = envelope::Envelope::LEN + Frame::HEADER_LEN + limits.put.max(limits.send);
        Self {
            wire: Wire::new(network.clone(), here.tag, longest),
            network,
            here,
            limits,
            regions: Regions::new(),
            remotes: RemoteRegions::new(),
            peers: BTreeMap::new(),
            greetings: BTreeMap::new(),
            connections: 0,
            reports: Vec::new(),
            now: None,
            arrived: Vec::new(),
            connect_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(10),
        }
    }

    /// The connection to a peer, when one more frame with content may go there.
    fn room_to(&mut self, peer: Peer) -> Result<Option<Peer>, TransportError> {
        let state = self.peers.get_mut(&peer).ok_or(TransportError::NotConnected)?;
        match state.stage {
            Stage::Lost => Err(TransportError::PeerLost),
            Stage::Disconnected => Err(TransportError::NotConnected),
            Stage::Connecting { .. } | Stage::Connected => Ok(state.has_room().then_some(peer)),
        }
    }

    /// Sends a frame; its content, if it has any, is `bytes`.
    fn say(&mut self, peer: Peer, frame: &Frame, bytes: &[u8]) -> Result<(), Trouble> {
        let Some(state) = self.peers.get_mut(&peer) else { return Ok(()) };
        let mut buffer = self.wire.buffer();
        buffer.extend_from_slice(&state.envelope(self.here.tag).encode());
        buffer.extend_from_slice(&frame.encode());
        buffer.extend_from_slice(bytes);
        state.spoke = self.now;
        self.hand_over(peer, buffer)
    }

    /// Hands a frame to MPI. If that refuses it, the peer is lost in the next turn.
    fn hand_over(&mut self, peer: Peer, buffer: Vec<u8>) -> Result<(), Trouble> {
        let Some(state) = self.peers.get_mut(&peer) else { return Ok(()) };
        match self.wire.send(state.place, buffer) {
            Err(Trouble::Code(code)) => {
                state.refusal.get_or_insert(code);
                Ok(())
            }
            other => other,
        }
    }
}

/// What a caller is told of trouble with MPI.
fn broken(trouble: Trouble) -> TransportError {
    match trouble {
        Trouble::Finalized => TransportError::System {
            context: "MPI was finalized before the communicator was dropped",
            code: 0,
        },
        Trouble::Code(code) => TransportError::System { context: "the MPI library refused a call", code },
    }
}

impl Transport for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ORDERED | Capabilities::REGISTER | Capabilities::ALLOCATE | Capabilities::REVOKE
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn address(&self) -> Address {
        address::encode(self.network.number(), self.here)
    }

    fn connect(&mut self, peer: Peer, address: &Address) -> Result<(), ConnectError> {
        let place = address::decode(self.network.number(), self.network.size(), address)?;
        if place == self.here {
            return Err(ConnectError::SelfConnect);
        }
        if self.peers.contains_key(&peer) {
            return Err(ConnectError::PeerReused);
        }
        self.connections += 1;
        let remote = self.greetings.get_mut(&place).and_then(VecDeque::pop_front);
        self.peers.insert(peer, PeerState::connecting(place, self.connections, remote));
        Ok(())
    }

    fn disconnect(&mut self, peer: Peer, _linger: Linger) {
        let Some(state) = self.peers.get_mut(&peer).filter(|state| state.is_live()) else { return };
        // What was sent before has been handed to MPI, which keeps the order.
        state.stage = Stage::Disconnected;
        self.remotes.release_peer(peer);
        let _ = self.say(peer, &Frame::Bye, &[]);
    }

    fn register(&mut self, memory: &Memory) -> Result<Region, RegisterError> {
        self.regions.insert(memory)
    }

    fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError> {
        self.regions.allocate(len)
    }

    fn deregister(&mut self, region: Region) {
        self.regions.remove(region);
    }

    fn export(&mut self, region: Region) -> Option<RegionKey> {
        let random = [getrandom::u64().ok()?, getrandom::u64().ok()?];
        let mut random = random.into_iter();
        self.regions.export(region, || random.next().unwrap_or_default())
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
        let Some(peer) = self.room_to(peer)? else { return Ok(Posted::Full) };
        self.say(peer, &Frame::Message { tag, len: bytes.len() }, bytes).map_err(broken)?;
        self.peers.get_mut(&peer).into_iter().for_each(PeerState::count_sent);
        Ok(Posted::Queued)
    }

    fn put(&mut self, put: &Put) -> Result<Posted, TransportError> {
        let Put { token, len, source, source_offset, target, target_offset, notice } = *put;
        if len > self.limits.put {
            return Err(TransportError::TooLong { len, max: self.limits.put });
        }
        self.regions.check(source, source_offset, len)?;
        let remote = *self.remotes.locate(target, target_offset, len)?;
        let Some(peer) = self.room_to(remote.peer)? else { return Ok(Posted::Full) };
        let Some(state) = self.peers.get_mut(&peer) else { return Ok(Posted::Full) };
        let mut buffer = self.wire.buffer();
        buffer.extend_from_slice(&state.envelope(self.here.tag).encode());
        let frame = Frame::Put { notice, key: remote.key, offset: target_offset as u64, len };
        buffer.extend_from_slice(&frame.encode());
        buffer.extend_from_slice(self.regions.bytes(source, source_offset, len)?);
        state.spoke = self.now;
        state.count_sent();
        self.hand_over(peer, buffer).map_err(broken)?;
        // The bytes have been copied.
        self.reports.push(Event::Done(token));
        Ok(Posted::Queued)
    }

    fn progress(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        self.turn(now, events).map_err(broken)
    }

    fn has_output(&self) -> bool {
        self.wire.is_sending()
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_step()
    }

    /// MPI has nothing to sleep on.
    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Tells the peers.
impl Drop for Mpi {
    fn drop(&mut self) {
        let live: Vec<Peer> =
            self.peers.iter().filter(|(_, state)| state.is_live()).map(|(peer, _)| *peer).collect();
        for peer in live {
            let _ = self.say(peer, &Frame::Handshake { step: GONE, len: 0 }, &[]);
        }
    }
}
