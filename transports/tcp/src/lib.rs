//! TCP transport of Gradwire: puts and messages between processes of one host or of many.
//!
//! [`Tcp`] is a [`Transport`](gradwire_transport::Transport) over one non-blocking connection per peer. It starts no
//! thread, never blocks and reads no clock: it moves when [`progress`](gradwire_transport::Transport::progress) is
//! called. It is `ORDERED`, takes memory of the caller as well as its own, and revokes what is deregistered.
//!
//! ```
//! use gradwire_transport::{Event, EventRef, Events, Peer, Tag, Transport};
//! use gradwire_transport_tcp::{Tcp, TcpConfig};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = TcpConfig::default();
//! config.secret = Some([7; 32]); // the same on all sides, and known to nobody else
//! let (mut left, mut right) = (Tcp::new(config.clone())?, Tcp::new(config)?);
//!
//! // Each side is told the other's address, by whatever means the job has.
//! let (to_left, to_right) = (Peer::new(0, 0), Peer::new(1, 0));
//! left.connect(to_right, &right.address())?;
//! right.connect(to_left, &left.address())?;
//!
//! let (mut events, mut at_left) = (Events::new(), Events::new());
//! loop {
//!     events.clear();
//!     right.progress(Instant::now(), &mut events)?;
//!     if events.iter().any(|event| event == EventRef::Received(to_left, Tag(1), b"hello")) {
//!         break;
//!     }
//!     at_left.clear();
//!     left.progress(Instant::now(), &mut at_left)?;
//!     if at_left.iter().any(|event| event == EventRef::Other(&Event::Connected(to_right))) {
//!         let _ = left.send(to_right, Tag(1), b"hello")?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Who may come in
//!
//! An endpoint has a random name of 16 bytes, which its address carries together with every socket address it
//! listens on. Of two endpoints that were told of each other the one with the lesser name dials; it tries the
//! candidates in turn, again and again until the deadline, and whoever answers proves who it is before anything
//! else is believed (see `handshake.rs`). So it does not matter where a connection seems to come from, nor who
//! else has the same private address. A stranger costs one descriptor and a few hundred bytes for at most one
//! handshake's time, their number is bounded, and none makes another wait.
//!
//! # How bytes travel
//!
//! Everything is a frame of [`gradwire_transport::frame`]. Messages and small puts are copied once, into a ring,
//! and leave together in one system call. The payload of a larger put is written from its region, and at the
//! target the socket is read into the region: no copy beside those of the system. The target asks the
//! registry for each piece it reads, so that a region taken back meanwhile is written no further; at the origin
//! zeros fill up a put whose source is taken back half-way, and its notice is left out.
//!
//! # Who is gone
//!
//! The end of a process is seen at once, as the end of its connection. A host that vanishes is noticed by its
//! silence: an idle connection says a heartbeat, and after some that were missed the peer is lost. Time in which
//! this process was itself not driven counts against nobody.
//!
//! # What it does not do yet
//!
//! One connection per peer, epoll only. No `get`, no atomics, no encryption after the handshake. IPv6 link-local
//! addresses are left out, since their scope differs from host to host.

#![forbid(unsafe_code)]

mod address;
mod clock;
mod config;
mod connection;
mod dial;
mod door;
mod handshake;
mod incoming;
mod interface;
mod lifecycle;
mod listen;
mod outgoing;
mod peers;
mod poll;
mod progress;
mod random;
mod socket;
#[cfg(test)]
mod stream_tests;
mod transport;

pub use config::{BindError, TcpConfig};
pub use interface::{InterfaceSelector, SelectorError};
pub use transport::Tcp;
