//! The waist of Gradwire: what a transport is, and nothing that does I/O.
//!
//! A [`Transport`] is a poll-driven object that knows peers, regions and bytes. It knows no rank, no
//! collective and no datatype. One thread at a time drives it; no method blocks, sleeps, spawns a thread or
//! reads a clock. [`Transport`]'s documentation lists the contract that every backend is tested against.

mod capability;
mod error;
mod event;
pub mod frame;
mod id;
mod memory;
mod operation;
pub mod region;
pub mod slots;
mod transport;

pub use capability::{Capabilities, Limits};
pub use error::{ConnectError, FailReason, ImportError, LossReason, RegisterError, TransportError};
pub use event::{Activity, Event, EventRef, Events};
pub use id::{Address, Notice, Peer, Region, RegionKey, RemoteRegion, Tag, Token};
pub use memory::{Allocation, Memory, MemoryKind};
pub use operation::{Atomic, AtomicKind, AtomicOperation, Get, Linger, Posted, Put};
pub use transport::{Direct, Transport};
