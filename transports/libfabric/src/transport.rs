//! [`Libfabric`], and what can be asked of it. How it moves is in `progress`, how peers come and go in `lifecycle`.

use crate::address;
use crate::atomics::Atomics;
use crate::domain::Domain;
use crate::error::OpenError;
use crate::frame::Control;
use crate::key::{KeyFields, Secret};
use crate::link::{Landing, Link, Links, Place, Stage, Work};
use crate::memory::{Block, Memory};
use crate::pool::{Buffers, MESSAGE, StandIns};
use crate::regions::Regions;
use crate::remotes::{Remote, Remotes};
use crate::sleep::Sleep;
use crate::wire::{Call, Completion, Target, Wire};
use crate::{LibfabricConfig, provider, sys};
use gradwire_transport::{
    Activity, Address, Allocation, Atomic, Capabilities, ConnectError, Event, Events, Get, ImportError,
    Limits, Linger, Peer, Posted, Put, Region, RegionKey, RegisterError, RemoteRegion, Tag, Transport,
    TransportError,
};
use gradwire_transport_tcp::Tcp;
use rustix::process::{Pid, getpid};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Operations of the caller to one peer that may be under way.
const OUTSTANDING: usize = 64;

/// One endpoint of a provider, and the connections that watch over its peers. See the crate's head.
pub struct Libfabric {
    // Dropped in this order: peers see the end, then the endpoint is closed, then memory is freed.
    pub(crate) control: Tcp,
    pub(crate) wire: Wire<Work>,
    pub(crate) links: Links,
    pub(crate) regions: Regions,
    pub(crate) remotes: Remotes,
    /// Waiting for messages, and carrying messages.
    pub(crate) inbox: Buffers,
    pub(crate) outbox: Buffers,
    pub(crate) stand_ins: StandIns,
    /// Buffers that the provider would not take yet.
    pub(crate) unposted: Vec<u32>,
    pub(crate) quarantine: Vec<Quarantined>,
    /// Where new peers try to write to.
    pub(crate) board: Arc<Memory>,
    pub(crate) board_key: RegionKey,
    pub(crate) secret: Secret,
    pub(crate) name: Vec<u8>,
    /// Happened outside of `progress`; to be told by the next one.
    pub(crate) reports: Vec<Event>,
    pub(crate) config: LibfabricConfig,
    pub(crate) pace: Pace,
    /// Scratch memory of `progress`.
    pub(crate) heard: Events,
    pub(crate) completions: Vec<Completion<Work>>,
    pub(crate) scratch: Vec<u8>,
    /// Whether completions carry 64 bits, enough for a notice and its sender.
    pub(crate) has_wide_data: bool,
    sleep: Sleep,
    atomics: Atomics,
    limits: Limits,
    capabilities: Capabilities,
    here: Address,
    owner: Pid,
}

/// Memory that was taken back and that peers may still reach: kept until they have said that they will not.
#[derive(Debug)]
pub(crate) struct Quarantined {
    pub(crate) _memory: Arc<Memory>,
    pub(crate) key: RegionKey,
    /// The slots of those who have not.
    pub(crate) waiting: Vec<u32>,
    /// Somebody was lost before it could: the provider may have half a write of it.
    pub(crate) for_good: bool,
}

/// When `progress` has to look where nothing tells it to.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Turns without a look at the control connections.
    pub(crate) unseen: u32,
    /// The next turn is to look at them.
    pub(crate) is_watchful: bool,
    /// Turns in which the queue was empty.
    pub(crate) silent_turns: u32,
    pub(crate) last_progress: Option<Instant>,
}

impl Libfabric {
    /// Opens an endpoint of the provider that `config` asks for, or of the best one.
    ///
    /// # Errors
    ///
    /// [`OpenError`], which says what is in the way and what to do about it.
    pub fn new(config: LibfabricConfig) -> Result<Self, OpenError> {
        let functions = sys::load().map_err(|reason| OpenError::NotPresent { reason })?;
        let info = provider::choose(functions, config.provider.as_deref(), &config.domains)?;
        let domain = Domain::open(info)?;
        let traits = domain.traits().clone();
        let control = Tcp::new(config.control.clone())?;
        let wire = Wire::open(domain.clone())?;
        let name = wire.name().map_err(|code| OpenError::library("fi_getname", code, &functions))?;
        let here = address::encode(&traits.provider, &control.address())
            .ok_or(OpenError::System { context: "an address of the control connections", code: 0 })?;
        let mut secret = Secret([0; 32]);
        getrandom::fill(&mut secret.0).map_err(no_random)?;
        let memory = |error: RegisterError| OpenError::System {
            context: match error {
                RegisterError::System { context, .. } => context,
                _ => "allocate memory",
            },
            code: match error {
                RegisterError::System { code, .. } => code,
                _ => 0,
            },
        };
        let board = wire.memory(64, Some(random()?)).map_err(memory)?;
        let board_key = key_of(&board, &secret).ok_or(OpenError::System { context: "fi_mr_key", code: 0 })?;
        let (mut inbox, mut outbox) = (Buffers::default(), Buffers::default());
        (inbox.grow(&wire).and_then(|()| inbox.grow(&wire))).map_err(memory)?;
        (outbox.grow(&wire).and_then(|()| outbox.grow(&wire))).map_err(memory)?;
        let unposted = (0..inbox.len() as u32).collect();
        let sleep = Sleep::new(&control, wire.readiness())
            .map_err(|code| OpenError::System { context: "epoll_create1", code })?;
        let atomics = Atomics::probe(&wire);
        tracing::info!(
            provider = traits.provider,
            domain = traits.domain,
            atomics = atomics.are_complete(),
            wakes = wire.readiness().is_some(),
            "libfabric endpoint open"
        );
        tracing::debug!(?traits, "libfabric provider");
        Ok(Self {
            capabilities: capabilities(&atomics, traits.is_hardware),
            limits: limits(&traits),
            has_wide_data: traits.cq_data_size >= size_of::<u64>(),
            control,
            wire,
            links: Links::default(),
            regions: Regions::default(),
            remotes: Remotes::default(),
            inbox,
            outbox,
            stand_ins: StandIns::default(),
            unposted,
            quarantine: Vec::new(),
            board,
            board_key,
            secret,
            name,
            reports: Vec::new(),
            config,
            pace: Pace::default(),
            heard: Events::new(),
            completions: Vec::new(),
            scratch: vec![0; crate::pool::BUFFER],
            sleep,
            atomics,
            here,
            owner: getpid(),
        })
    }

    /// The provider in use, as `fi_info` calls it.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.wire.domain().traits().provider
    }

    /// Whether a network card places the bytes.
    #[must_use]
    pub fn is_hardware(&self) -> bool {
        self.wire.domain().traits().is_hardware
    }

    /// Sends notices as messages, as over providers whose completions carry 32 bits.
    #[doc(hidden)]
    pub fn narrow_completions(&mut self) {
        self.has_wide_data = false;
    }

    /// The slot of a peer to which one more operation may be posted.
    fn room_to(&self, remote: &Remote) -> Result<Option<u32>, TransportError> {
        let link = self.links.get(remote.link).ok_or(TransportError::PeerLost)?;
        let slot = self.links.open(link.name)?;
        Ok(slot.filter(|_| link.operations < OUTSTANDING))
    }

    fn target(&self, remote: &Remote, offset: usize) -> Target {
        Target {
            peer: self.peer_address(remote.link),
            address: remote.fields.address.wrapping_add(offset as u64),
            key: remote.fields.key,
        }
    }
}

impl Transport for Libfabric {
    fn name(&self) -> &'static str {
        "libfabric"
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn address(&self) -> Address {
        self.here.clone()
    }

    fn connect(&mut self, peer: Peer, address: &Address) -> Result<(), ConnectError> {
        let control = address::decode(self.provider(), address).map_err(ConnectError::BadAddress)?;
        let nonce = random().map_err(|_| ConnectError::System { context: "getrandom", code: 0 })?;
        self.part_from(&control);
        self.control.connect(peer, &control)?;
        if self.links.insert(Link::new(peer, control, nonce)).is_none() {
            self.control.disconnect(peer, Linger::Drop);
            return Err(ConnectError::System { context: "more than 65536 peers", code: 0 });
        }
        self.grow_inbox();
        self.pace.is_watchful = true;
        Ok(())
    }

    fn disconnect(&mut self, peer: Peer, linger: Linger) {
        self.leave(peer, linger);
    }

    fn register(&mut self, memory: &gradwire_transport::Memory) -> Result<Region, RegisterError> {
        self.regions.insert_caller(memory)
    }

    fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError> {
        let key = random().map_err(|_| RegisterError::System { context: "getrandom", code: 0 })?;
        let block = Arc::new(Block::zeroed(len)?);
        let memory = self.wire.register(block.clone(), Some(key))?;
        let region = self.regions.insert_own(memory)?;
        Ok((region, crate::memory::allocation(block)))
    }

    fn deregister(&mut self, region: Region) {
        let Some(occupant) = self.regions.remove(region) else { return };
        if let (Some(key), Some(memory)) = (occupant.key, occupant.into_own()) {
            self.withdraw(key, memory);
        }
    }

    fn export(&mut self, region: Region) -> Option<RegionKey> {
        self.regions.export(region, &self.secret)
    }

    fn import(&mut self, peer: Peer, key: &RegionKey) -> Result<RemoteRegion, ImportError> {
        let Ok(Some(slot)) = self.links.open(peer) else { return Err(ImportError::NotConnected) };
        let link = self.links.get_mut(slot).ok_or(ImportError::NotConnected)?;
        let theirs = link.theirs.as_ref().ok_or(ImportError::NotConnected)?;
        let fields = KeyFields::verify(key, &theirs.secret).ok_or(ImportError::BadKey)?;
        if link.withdrawn.contains(key) {
            return Err(ImportError::BadKey);
        }
        match link.probed.get(key) {
            Some(true) => self.remotes.insert(Remote { link: slot, key: *key, fields, is_withdrawn: false }),
            Some(false) => Err(ImportError::NotYet),
            None => {
                self.probe(slot, *key, fields);
                Err(ImportError::NotYet)
            }
        }
    }

    fn release(&mut self, region: RemoteRegion) {
        self.remotes.release(region);
    }

    fn send(&mut self, peer: Peer, tag: Tag, bytes: &[u8]) -> Result<Posted, TransportError> {
        if bytes.len() > MESSAGE {
            return Err(TransportError::TooLong { len: bytes.len(), max: MESSAGE });
        }
        let Some(slot) = self.links.open(peer)? else { return Ok(Posted::Full) };
        Ok(self.send_message(slot, tag, bytes))
    }

    fn put(&mut self, put: &Put) -> Result<Posted, TransportError> {
        if put.len > self.limits.put {
            return Err(TransportError::TooLong { len: put.len, max: self.limits.put });
        }
        let remote = self.remotes.locate(put.target, put.target_offset, put.len)?;
        self.regions.check(put.source, put.source_offset, put.len)?;
        let Some(slot) = self.room_to(&remote)? else { return Ok(Posted::Full) };
        if remote.is_withdrawn {
            self.reports.push(Event::Done(put.token));
            return Ok(Posted::Queued);
        }
        let (from, stand_in) = match self.regions.piece(put.source, put.source_offset, put.len) {
            Some(piece) => (piece, None),
            None => {
                let memory = self.stand_in(put.len)?;
                let piece = memory.piece(0, put.len).ok_or(TransportError::Unsupported)?;
                self.regions.copy_out(put.source, put.source_offset, put.len, &piece)?;
                (piece, Some(memory))
            }
        };
        let to = self.target(&remote, put.target_offset);
        let data = put.notice.filter(|_| self.has_wide_data).map(|notice| self.data_for(slot, notice.0));
        let later = put.notice.filter(|_| !self.has_wide_data);
        let call = Call::Write { from, to, data, is_delivered: later.is_some() };
        let work = Work::Put { link: slot, token: Some(put.token), key: remote.key, stand_in, notice: later };
        self.begin(slot, call, work);
        Ok(Posted::Queued)
    }

    fn get(&mut self, get: &Get) -> Result<Posted, TransportError> {
        if get.len > self.limits.put {
            return Err(TransportError::TooLong { len: get.len, max: self.limits.put });
        }
        let remote = self.remotes.locate(get.source, get.source_offset, get.len)?;
        self.regions.check(get.target, get.target_offset, get.len)?;
        let Some(slot) = self.room_to(&remote)? else { return Ok(Posted::Full) };
        if get.len == 0 || remote.is_withdrawn {
            self.reports.push(match remote.is_withdrawn {
                false => Event::Done(get.token),
                true => Event::Failed(get.token, gradwire_transport::FailReason::Revoked),
            });
            return Ok(Posted::Queued);
        }
        let (into, landing) = match self.regions.piece(get.target, get.target_offset, get.len) {
            Some(piece) => (piece, None),
            None => {
                let stand_in = self.stand_in(get.len)?;
                let piece = stand_in.piece(0, get.len).ok_or(TransportError::Unsupported)?;
                let (region, offset, len) = (get.target, get.target_offset, get.len);
                (piece, Some(Landing { stand_in, from: 0, region, offset, len }))
            }
        };
        let call = Call::Read { into, from: self.target(&remote, get.source_offset) };
        self.begin(slot, call, Work::Get { link: slot, token: Some(get.token), key: remote.key, landing });
        Ok(Posted::Queued)
    }

    fn atomic(&mut self, atomic: &Atomic) -> Result<Posted, TransportError> {
        let Some(known) = self.atomics.find(atomic) else { return Err(TransportError::Unsupported) };
        let remote = self.remotes.locate(atomic.target, atomic.target_offset, known.size)?;
        self.regions.check(atomic.fetched, atomic.fetched_offset, known.size)?;
        if !atomic.target_offset.is_multiple_of(known.size) {
            let region_len = remote.fields.len as usize;
            return Err(TransportError::OutOfRange {
                offset: atomic.target_offset,
                len: known.size,
                region_len,
            });
        }
        let Some(slot) = self.room_to(&remote)? else { return Ok(Posted::Full) };
        let stand_in = self.stand_in(24)?;
        let part = |place: usize| stand_in.piece(8 * place, known.size).ok_or(TransportError::Unsupported);
        let (operand, compare, result) = (part(0)?, part(1)?, part(2)?);
        operand.write(&atomic.operand.to_le_bytes()[..known.size]);
        compare.write(&atomic.compare.to_le_bytes()[..known.size]);
        let call = Call::Atomic {
            operand,
            compare: known.compares.then_some(compare),
            result,
            at: self.target(&remote, atomic.target_offset),
            kind: known.kind,
            operation: known.operation,
        };
        let (region, offset) = (atomic.fetched, atomic.fetched_offset);
        let landing = Some(Landing { stand_in, from: 16, region, offset, len: known.size });
        self.begin(slot, call, Work::Get { link: slot, token: Some(atomic.token), key: remote.key, landing });
        Ok(Posted::Queued)
    }

    fn progress(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        self.advance(now, events)
    }

    fn has_output(&self) -> bool {
        self.control.has_output()
            || self.links.iter().any(|link| link.has_output() || !link.unsaid.is_empty())
    }

    fn deadline(&self) -> Option<Instant> {
        let own = self.links.iter().filter_map(|link| match &link.stage {
            Stage::Greeting { deadline } => Some(*deadline),
            Stage::Ending { until, .. } => Some(*until),
            Stage::Leaving { deadline, .. } => deadline.or(self.pace.last_progress),
            Stage::Calling | Stage::Open | Stage::Over => None,
        });
        own.chain(self.control.deadline()).min()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.sleep.readiness()
    }

    fn prepare_sleep(&mut self) -> bool {
        self.pace.is_watchful = true;
        let is_stuck = |link: &Link| !link.unsaid.is_empty() || !link.backlog.is_empty() && link.flights == 0;
        self.reports.is_empty()
            && self.unposted.is_empty()
            && !self.links.iter().any(is_stuck)
            && self.control.prepare_sleep()
            && self.wire.may_sleep()
    }
}

impl fmt::Debug for Libfabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Libfabric")
            .field("provider", &self.provider())
            .field("links", &self.links)
            .field("quarantine", &self.quarantine.len())
            .field("control", &self.control)
            .finish_non_exhaustive()
    }
}

impl Drop for Libfabric {
    fn drop(&mut self) {
        let is_over = |link: &Link| matches!(link.stage, Stage::Over) && link.flights == 0;
        let is_fork = getpid() != self.owner;
        if !is_fork && self.links.iter().all(is_over) {
            return;
        }
        // Providers have been seen to crash when an endpoint is closed in the middle of a peer's write. And a fork's copy has
        // nothing to say to our peers.
        self.wire.abandon();
        if !is_fork && let Some(file) = address::file_of(&self.name) {
            // Whoever has it mapped keeps it.
            let _ = rustix::shm::unlink(file);
        }
    }
}

impl Libfabric {
    /// Memory that stands in for the caller's.
    fn stand_in(&mut self, len: usize) -> Result<Arc<Memory>, TransportError> {
        self.stand_ins.take(&self.wire, len).map_err(|error| match error {
            RegisterError::System { context, code } => TransportError::System { context, code },
            _ => TransportError::Unsupported,
        })
    }

    /// Posts an operation of the caller's.
    fn begin(&mut self, slot: u32, call: Call, work: Work) {
        if let Some(link) = self.links.get_mut(slot) {
            link.operations += 1;
        }
        self.submit(slot, call, work);
    }

    /// Keeps memory that was taken back until no peer can write there any more.
    fn withdraw(&mut self, key: RegionKey, memory: Arc<Memory>) {
        let mut waiting = Vec::new();
        for slot in self.links.slots() {
            let Some(link) = self.links.get_mut(slot) else { continue };
            if matches!(link.stage, Stage::Open | Stage::Greeting { .. }) {
                link.unsaid.push_back(Control::Withdraw(key));
                waiting.push(slot);
            }
        }
        // Those on their way out may have it, too, and will not answer.
        let is_leaving =
            |link: &Link| !matches!(link.stage, Stage::Calling | Stage::Open | Stage::Greeting { .. });
        let for_good = self.links.iter().any(is_leaving);
        if !waiting.is_empty() || for_good {
            self.quarantine.push(Quarantined { _memory: memory, key, waiting, for_good });
        }
    }

    pub(crate) fn retire(&mut self, name: Peer, place: Place) {
        self.links.retire(name, place);
    }
}

fn key_of(memory: &Memory, secret: &Secret) -> Option<RegionKey> {
    let (key, address, len) = (memory.key()?, memory.remote_address(), memory.len() as u64);
    Some(KeyFields { key, address, len }.sign(secret))
}

fn capabilities(atomics: &Atomics, is_hardware: bool) -> Capabilities {
    let mut all = Capabilities::REGISTER | Capabilities::ALLOCATE | Capabilities::GET;
    if atomics.are_complete() {
        all = all | Capabilities::ATOMIC;
    }
    if is_hardware {
        all = all | Capabilities::RDMA;
    }
    all
}

fn limits(traits: &provider::Traits) -> Limits {
    let mut limits = Limits::MODEST;
    limits.send = MESSAGE;
    limits.eager = MESSAGE;
    limits.put = traits.max_msg_size.min(1 << 30);
    limits.inline = traits.inject_size.saturating_sub(crate::frame::Head::LEN);
    limits.outstanding = OUTSTANDING;
    (limits.latency, limits.bandwidth) = match traits.is_hardware {
        true => (Duration::from_micros(2), 10e9),
        false => (Duration::from_micros(20), 2e9),
    };
    limits
}

pub(crate) fn random() -> Result<u64, OpenError> {
    getrandom::u64().map_err(no_random)
}

fn no_random(error: getrandom::Error) -> OpenError {
    OpenError::System { context: "getrandom", code: error.raw_os_error().unwrap_or_default() }
}
