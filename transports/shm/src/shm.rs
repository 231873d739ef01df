//! The transport.

use crate::address::Name;
use crate::bell::Bell;
use crate::connections::{Connections, Patience};
use crate::handshake::Identity;
use crate::regions::{self, Regions};
use crate::remote::{Key, Remote};
use crate::segment::{self, Refused};
use crate::{MAX_RING, MAX_SEND, MIN_RING};
use gradwire_transport::slots::Slots;
use gradwire_transport::{
    Activity, Address, Allocation, Capabilities, ConnectError, Direct, Event, Events, FailReason, Get,
    ImportError, Limits, Linger, Memory, Peer, Posted, Put, Region, RegionKey, RegisterError, RemoteRegion,
    Tag, Transport, TransportError,
};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How a [`Shm`] is set up.
#[derive(Clone)]
pub struct ShmConfig {
    /// What every process of the job knows and no stranger does. Without one, processes of the same user are
    /// trusted.
    pub secret: Option<[u8; 32]>,
    /// Bytes of the ring in which one peer's messages wait for us: a power of two from 64 KiB to 64 MiB.
    pub ring: usize,
    /// How long both sides may take from `connect` to `Connected`, retries included.
    pub connect_timeout: Duration,
    /// How long a caller may take to prove itself.
    pub handshake_timeout: Duration,
    /// How many callers that have proven nothing may be connected at a time; beyond it the oldest is dropped.
    pub half_open: usize,
}

impl Default for ShmConfig {
    fn default() -> Self {
        Self {
            secret: None,
            ring: 256 << 10,
            connect_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(3),
            half_open: 128,
        }
    }
}

impl fmt::Debug for ShmConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShmConfig")
            .field("secret", &self.secret.map(|_| "..."))
            .field("ring", &self.ring)
            .field("connect_timeout", &self.connect_timeout)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("half_open", &self.half_open)
            .finish()
    }
}

/// Why shared memory cannot be used by this process.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused: the code says why. Without memfd or Unix sockets use another transport.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
    /// A ring must be a power of two of bytes within limits.
    #[error("a ring of {ring} bytes: give a power of two from {MIN_RING} to {MAX_RING}")]
    BadRing {
        /// What was asked for.
        ring: usize,
    },
}

impl From<Refused> for OpenError {
    fn from(Refused { context, code }: Refused) -> Self {
        Self::System { context, code }
    }
}

/// The transport between processes of one host.
pub struct Shm {
    connections: Connections,
    regions: Regions,
    remotes: Slots<Remote>,
    /// Operations that are over and not reported yet.
    done: Vec<Event>,
    scratch: Box<[u8; MAX_SEND]>,
    limits: Limits,
    /// The process that made this. In a forked child we must not speak for it.
    process: u32,
}

impl Shm {
    /// Listens, and allocates nothing yet.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: without descriptors, random bytes or permission; all of it can be met in a sandbox.
    pub fn new(config: ShmConfig) -> Result<Self, OpenError> {
        if !config.ring.is_power_of_two() || !(MIN_RING..=MAX_RING).contains(&config.ring) {
            return Err(OpenError::BadRing { ring: config.ring });
        }
        let name = Name::random().map_err(|error| OpenError::System {
            context: "random bytes for a name",
            code: error.raw_os_error().unwrap_or(0),
        })?;
        let identity = Identity { name, secret: config.secret, bell: Bell::new()?, capacity: config.ring };
        let patience = Patience {
            connect: config.connect_timeout,
            handshake: config.handshake_timeout,
            half_open: config.half_open,
        };
        let connections = Connections::new(identity, patience)
            .map_err(|(context, errno)| OpenError::System { context, code: errno.raw_os_error() })?;
        Ok(Self {
            connections,
            regions: Regions::default(),
            remotes: Slots::new(),
            done: Vec::new(),
            scratch: Box::new([0; MAX_SEND]),
            limits: limits(),
            process: std::process::id(),
        })
    }

    fn remote(&self, region: RemoteRegion) -> Option<&Remote> {
        self.remotes.get(region.index(), region.generation())
    }
}

/// Measured on a two-core virtual machine; good enough until the caller measures.
fn limits() -> Limits {
    let mut limits = Limits::MODEST;
    limits.send = MAX_SEND;
    // At 8 KiB a message that is sent at once takes half as long as one that announces itself, at 15 KiB about as long.
    limits.eager = 16 << 10;
    limits.put = 1 << 20;
    limits.inline = 256;
    limits.outstanding = 256;
    limits.alignment = 64;
    limits.latency = Duration::from_nanos(300);
    limits.bandwidth = 10e9;
    limits
}

impl Transport for Shm {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ORDERED
            | Capabilities::REGISTER
            | Capabilities::ALLOCATE
            | Capabilities::DIRECT
            | Capabilities::GET
            | Capabilities::REVOKE
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn address(&self) -> Address {
        self.connections.identity.name.to_address()
    }

    fn connect(&mut self, peer: Peer, address: &Address) -> Result<(), ConnectError> {
        let name = Name::from_address(address).map_err(ConnectError::BadAddress)?;
        self.connections.connect(peer, name)
    }

    /// Whatever `linger` says, messages already posted are in the peer's memory.
    fn disconnect(&mut self, peer: Peer, _linger: Linger) {
        self.connections.disconnect(peer);
    }

    fn register(&mut self, memory: &Memory) -> Result<Region, RegisterError> {
        self.regions.register(memory)
    }

    fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError> {
        let (region, allocation, announcement) = self.regions.allocate(len)?;
        if let Some((frame, descriptor)) = announcement {
            self.connections.tell_all(frame, descriptor.as_ref());
        }
        Ok((region, allocation))
    }

    fn deregister(&mut self, region: Region) {
        if let Some(frame) = self.regions.deregister(region) {
            self.connections.tell_all(frame, None);
        }
    }

    fn export(&mut self, region: Region) -> Option<RegionKey> {
        self.regions.export(region, self.connections.identity.name)
    }

    fn import(&mut self, peer: Peer, key: &RegionKey) -> Result<RemoteRegion, ImportError> {
        let Ok(Some(link)) = self.connections.link(peer) else { return Err(ImportError::NotConnected) };
        let key = Key::decode(key, link.name()).ok_or(ImportError::BadKey)?;
        let segment = match key.len {
            0 => None,
            _ => Some(
                link.segment(key.id)
                    .map_err(|to_come| if to_come { ImportError::NotYet } else { ImportError::BadKey })?,
            ),
        };
        let remote = Remote::new(peer, segment);
        if remote.len() as u64 != key.len {
            return Err(ImportError::BadKey);
        }
        let (index, generation) = self
            .remotes
            .insert(remote)
            .ok_or(ImportError::System { context: "names for remote regions have run out", code: 0 })?;
        Ok(RemoteRegion::new(index, generation))
    }

    fn release(&mut self, region: RemoteRegion) {
        self.remotes.remove(region.index(), region.generation());
    }

    fn direct(&self, region: RemoteRegion) -> Option<Direct> {
        self.remote(region).map(|remote| Direct { address: remote.address(), len: remote.len() })
    }

    fn send(&mut self, peer: Peer, tag: Tag, bytes: &[u8]) -> Result<Posted, TransportError> {
        if bytes.len() > MAX_SEND {
            return Err(TransportError::TooLong { len: bytes.len(), max: MAX_SEND });
        }
        Ok(self.connections.link(peer)?.map_or(Posted::Full, |link| link.send(tag, bytes)))
    }

    fn put(&mut self, put: &Put) -> Result<Posted, TransportError> {
        let &Put { token, len, source_offset, target_offset, notice, .. } = put;
        self.check_len(len)?;
        let source = self.regions.locate(put.source, source_offset, len)?;
        let (remote, target) = self.locate_remote(put.target, target_offset, len)?;
        let (peer, revoked) = (remote.peer, remote.is_revoked());
        let Some(link) = self.connections.link(peer)? else { return Ok(Posted::Full) };
        if self.done.len() >= self.limits.outstanding || (notice.is_some() && !link.takes_notice()) {
            return Ok(Posted::Full);
        }
        if revoked {
            self.done.push(Event::Failed(token, FailReason::Revoked));
            return Ok(Posted::Queued);
        }
        // SAFETY: `locate` found both ranges inside their regions. The source is an allocation that the table keeps
        // mapped, or memory whose registrant promised it valid and unreferenced; the target is a mapping that
        // `remotes` keeps.
        unsafe { segment::copy(source, target, len) };
        if let Some(notice) = notice {
            // Room was made sure of above, and only we take it.
            let _ = link.notify(notice);
        }
        self.done.push(Event::Done(token));
        Ok(Posted::Queued)
    }

    fn get(&mut self, get: &Get) -> Result<Posted, TransportError> {
        let &Get { token, len, source_offset, target_offset, .. } = get;
        self.check_len(len)?;
        let target = self.regions.locate(get.target, target_offset, len)?;
        let (remote, source) = self.locate_remote(get.source, source_offset, len)?;
        let (peer, revoked) = (remote.peer, remote.is_revoked());
        if self.connections.link(peer)?.is_none() || self.done.len() >= self.limits.outstanding {
            return Ok(Posted::Full);
        }
        if revoked {
            self.done.push(Event::Failed(token, FailReason::Revoked));
            return Ok(Posted::Queued);
        }
        // SAFETY: as in `put`, with the roles exchanged; a registrant promised memory valid for writes, too.
        unsafe { segment::copy(source, target, len) };
        self.done.push(Event::Done(token));
        Ok(Posted::Queued)
    }

    fn progress(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError> {
        let reported = if self.done.is_empty() { Activity::Idle } else { Activity::Busy };
        self.done.drain(..).for_each(|event| events.push(event));
        let regions = &self.regions;
        let activity =
            self.connections.progress(now, &|| regions.announcements(), &mut self.scratch, events)?;
        Ok(reported.or(activity))
    }

    fn deadline(&self) -> Option<Instant> {
        self.connections.deadline()
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connections.readiness())
    }

    fn prepare_sleep(&mut self) -> bool {
        let quiet = self.connections.prepare_sleep();
        quiet && self.done.is_empty()
    }
}

impl Shm {
    fn check_len(&self, len: usize) -> Result<(), TransportError> {
        let max = self.limits.put;
        if len > max { Err(TransportError::TooLong { len, max }) } else { Ok(()) }
    }

    fn locate_remote(
        &self,
        region: RemoteRegion,
        offset: usize,
        len: usize,
    ) -> Result<(&Remote, std::ptr::NonNull<u8>), TransportError> {
        let remote = self.remote(region).ok_or(TransportError::OutOfRange { offset, len, region_len: 0 })?;
        Ok((remote, regions::locate(remote.address(), remote.len(), offset, len)?))
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        // A forked child that drops its copy must neither say goodbye in its parent's name nor copy memory.
        if std::process::id() == self.process {
            self.connections.close();
            self.regions.revoke_all();
        }
    }
}

impl fmt::Debug for Shm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shm")
            .field("address", &self.address())
            .field("regions", &self.regions)
            .finish_non_exhaustive()
    }
}
