//! The trait.

use crate::{
    Activity, Address, Allocation, Atomic, Capabilities, ConnectError, Events, Get, ImportError, Limits,
    Linger, Memory, Peer, Posted, Put, Region, RegionKey, RegisterError, RemoteRegion, Tag, TransportError,
};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::time::Instant;

/// Moves bytes between this process and its peers. Poll-driven; see the crate's head.
///
/// The contract, each point of which is a test that every backend passes:
///
/// 1. [`Posted::Full`] queued nothing; call again after [`progress`](Self::progress) reported activity.
/// 2. There is no order between puts unless [`Capabilities::ORDERED`]. A [`Notice`](crate::Notice) is an
///    identity, not a count: a repeated or stale one is harmless.
/// 3. Only [`Event::Notified`](crate::Event::Notified) makes bytes of a put readable at the target.
/// 4. A lost peer yields what it had handed to the system before its end, `Failed` for each operation on it, then exactly
///    one `PeerLost`.
/// 5. Every process must be driven, also as a pure target of puts.
/// 6. Time is passed in, never read.
/// 7. Where software places the bytes, the target checks every put: the key is one that was exported, the
///    range lies inside the region, the region is still there. A bad one costs the peer its connection, except
///    that a put to a region deregistered meanwhile is thrown away unnoticed: its sender could not know.
/// 8. Memory that a peer may write never sits behind a live `&T` or `&mut T`.
/// 9. [`deregister`](Self::deregister) revokes: afterwards neither a peer nor a queue reads or writes that memory.
///    Operations under way on it end in `Failed` or, when their bytes had left before, in `Done`.
///
/// Messages of one peer arrive in the order they were sent. Messages and puts are not ordered among each other
/// unless [`Capabilities::ORDERED`].
pub trait Transport: Send + fmt::Debug {
    /// What kind this is: `shm`, `tcp`, ...
    fn name(&self) -> &'static str;
    /// Whether it can do things.
    fn capabilities(&self) -> Capabilities;
    /// How much it can do.
    fn limits(&self) -> &Limits;

    /// Where peers reach this transport. Constant for the life of the transport, and unlike any other's.
    fn address(&self) -> Address;
    /// Starts a connection. *Both* sides call this with the other's address; the transport decides who dials.
    /// Ends in `Connected` or `PeerLost`. Meanwhile `send` answers `Full`.
    ///
    /// # Errors
    ///
    /// When it is certain at once that no connection can come to be. Then no event follows.
    fn connect(&mut self, peer: Peer, address: &Address) -> Result<(), ConnectError>;
    /// Ends a connection. Operations under way fail; no `PeerLost` is reported for a peer disconnected by us.
    fn disconnect(&mut self, peer: Peer, linger: Linger);

    /// Makes memory of the caller known, until [`deregister`](Self::deregister). What the caller owes is said at
    /// [`Memory::host`].
    ///
    /// # Errors
    ///
    /// [`RegisterError::Unsupported`] without [`Capabilities::REGISTER`]; otherwise what the system said.
    fn register(&mut self, memory: &Memory) -> Result<Region, RegisterError>;
    /// Allocates zeroed memory that peers can reach best, and registers it.
    ///
    /// # Errors
    ///
    /// [`RegisterError::Unsupported`] without [`Capabilities::ALLOCATE`]; otherwise what the system said.
    fn allocate(&mut self, len: usize) -> Result<(Region, Allocation), RegisterError>;
    /// Forgets a region and revokes every access to it. Cannot fail; unknown regions are ignored. Memory from
    /// `allocate` keeps its address and, where memory suffices, its contents, and is private from now on.
    fn deregister(&mut self, region: Region);
    /// The key by which a peer may reach the region. `None` for an unknown region and, under
    /// [`Capabilities::DIRECT`], for memory of the caller: peers cannot map that. Nor does memory of the caller have a key
    /// without [`Capabilities::REVOKE`]: it could not be taken back.
    fn export(&mut self, region: Region) -> Option<RegionKey>;
    /// Accepts a peer's key.
    ///
    /// # Errors
    ///
    /// [`ImportError::BadKey`] for a key that this peer cannot have exported.
    fn import(&mut self, peer: Peer, key: &RegionKey) -> Result<RemoteRegion, ImportError>;
    /// Gives a peer's region back.
    fn release(&mut self, region: RemoteRegion);
    /// The mapping of a peer's region, under [`Capabilities::DIRECT`]. Valid until `release`, or until the
    /// transport is dropped; not touched by the loss of the peer.
    fn direct(&self, region: RemoteRegion) -> Option<Direct> {
        let _ = region;
        None
    }

    /// Sends a small message; the bytes are copied. Arrives once, in order, or the peer is lost.
    ///
    /// # Errors
    ///
    /// [`TransportError::TooLong`], [`TransportError::NotConnected`], [`TransportError::PeerLost`].
    fn send(&mut self, peer: Peer, tag: Tag, bytes: &[u8]) -> Result<Posted, TransportError>;
    /// Writes into a peer's region.
    ///
    /// # Errors
    ///
    /// [`TransportError::OutOfRange`] when either range lies outside its region, and those of `send`.
    fn put(&mut self, put: &Put) -> Result<Posted, TransportError>;
    /// Reads from a peer's region.
    ///
    /// # Errors
    ///
    /// [`TransportError::Unsupported`] without [`Capabilities::GET`], and those of `put`.
    fn get(&mut self, get: &Get) -> Result<Posted, TransportError> {
        let _ = get;
        Err(TransportError::Unsupported)
    }
    /// One remote atomic.
    ///
    /// # Errors
    ///
    /// [`TransportError::Unsupported`] without [`Capabilities::ATOMIC`], and those of `put`.
    fn atomic(&mut self, atomic: &Atomic) -> Result<Posted, TransportError> {
        let _ = atomic;
        Err(TransportError::Unsupported)
    }

    /// Moves what can be moved without waiting, and appends what happened to `events`.
    ///
    /// # Errors
    ///
    /// Only when the transport as a whole is broken; trouble with one peer is an event.
    fn progress(&mut self, now: Instant, events: &mut Events) -> Result<Activity, TransportError>;
    /// Whether something that was taken has still to be handed to the system or the peer by `progress`. A process that
    /// ends before would take it along.
    fn has_output(&self) -> bool {
        false
    }
    /// When `progress` must be called again even if nothing becomes ready.
    fn deadline(&self) -> Option<Instant>;
    /// Readable when `progress` has work. Before sleeping on it call [`prepare_sleep`](Self::prepare_sleep).
    fn readiness(&self) -> Option<BorrowedFd<'_>>;
    /// Tells peers that a wake-up call is needed from now on (shared memory rings a bell only for sleepers).
    /// `false`: something has arrived meanwhile, do not sleep. Undone by the next `progress`.
    fn prepare_sleep(&mut self) -> bool {
        true
    }
}

/// A peer's memory, mapped here. Reading and writing it is up to the few places that may (see
/// [`region`](crate::region)).
#[derive(Clone, Copy, Debug)]
pub struct Direct {
    /// The first byte.
    pub address: NonNull<u8>,
    /// Bytes.
    pub len: usize,
}
