//! What the engine asks of the outside world.

use crate::buffer::Span;
use gradwire_transport::{ImportError, Put, Region, RegionKey, RegisterError, RemoteRegion};

/// A process of the job, by its number in the job.
pub(crate) type Process = u32;

/// Whether something was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// Taken; or the peer is lost, which an event tells.
    Taken,
    /// Nothing was taken: again after progress.
    Full,
}

/// Memory of the library's that a peer may write while it is lent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staging {
    pub(crate) region: Region,
    pub(crate) key: RegionKey,
    pub(crate) span: Span,
}

/// The transports, as the engine sees them: by process, without knowing which transport leads there.
pub(crate) trait Port {
    /// The most bytes of one message to `peer`.
    fn message_limit(&self, peer: Process) -> usize;
    /// The most bytes of a message that is sent to `peer` unasked, without a header.
    fn eager_limit(&self, peer: Process) -> usize;
    /// Sends a message.
    fn send(&mut self, peer: Process, bytes: &[u8]) -> Sent;

    /// Makes memory of an operation known to the transport that leads to `peer`, as a source of puts.
    fn register(&mut self, peer: Process, span: Span) -> Result<Region, RegisterError>;
    /// Makes registered memory a target as well. Only memory that can be revoked gets a key.
    fn export(&mut self, peer: Process, region: Region) -> Option<RegionKey>;
    /// Undoes `register`: neither the peer nor a queue touches the memory afterwards.
    fn deregister(&mut self, peer: Process, region: Region);
    /// Lends library memory to `peer`.
    fn lend(&mut self, peer: Process, len: usize) -> Result<Staging, RegisterError>;
    /// Takes it back. `clean`: all that the peer was asked to write has arrived, so that the memory may be lent again.
    fn reclaim(&mut self, peer: Process, staging: Staging, clean: bool);

    /// Accepts a peer's key.
    fn import(&mut self, peer: Process, key: &RegionKey) -> Result<RemoteRegion, ImportError>;
    /// Gives it back.
    fn release(&mut self, peer: Process, region: RemoteRegion);
    /// Writes into a peer's memory.
    fn put(&mut self, peer: Process, put: &Put) -> Sent;

    /// Whether the system lets this process and `peer` read each other's memory.
    fn can_read(&self, peer: Process) -> bool;
    /// Fills memory with what lies at an address of `peer`. `false`: it cannot be read, or not any more.
    fn read(&mut self, peer: Process, address: u64, into: Span) -> bool;

    /// Cuts off a peer that broke the protocol.
    fn expel(&mut self, peer: Process);
}
