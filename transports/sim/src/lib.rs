//! A network inside one process: seeded, with virtual time and with faults to order.
//!
//! A [`Network`] hands out endpoints, each a [`Transport`](gradwire_transport::Transport) for one simulated
//! process. Time is whatever `progress` is told: a test passes instants of its own making and is as fast as its
//! processor; ranks on threads pass the real time and see real delays. With equal seeds and equal sequences of
//! calls everything happens alike.
//!
//! ```
//! use gradwire_transport::{Event, EventRef, Events, Peer, Tag, Transport};
//! use gradwire_transport_sim::{Config, Network};
//! use std::time::Instant;
//!
//! let network = Network::new(7, Config::default());
//! let (mut left, mut right) = (network.endpoint(), network.endpoint());
//! left.connect(Peer::new(0, 0), &right.address())?;
//! right.connect(Peer::new(0, 0), &left.address())?;
//!
//! let (mut now, mut events) = (Instant::now(), Events::new());
//! let mut received = None;
//! while received.is_none() {
//!     left.progress(now, &mut events)?;
//!     if events.iter().any(|event| event == EventRef::Other(&Event::Connected(Peer::new(0, 0)))) {
//!         let _ = left.send(Peer::new(0, 0), Tag(1), b"hello")?;
//!     }
//!     events.clear();
//!     right.progress(now, &mut events)?;
//!     received = events.iter().find_map(|event| match event {
//!         EventRef::Received(_, tag, bytes) => Some((tag, bytes.to_vec())),
//!         _ => None,
//!     });
//!     events.clear();
//!     // On to the next thing that happens anywhere.
//!     now = network.next_event(now).unwrap_or(now);
//! }
//! assert_eq!(received, Some((Tag(1), b"hello".to_vec())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The model
//!
//! A parcel of `n` bytes leaves when its sender's port is free, occupies it for `n / bandwidth`, travels for
//! `latency`, and occupies the receiver's port as long again ([`Link`]). So two senders to one receiver get half
//! the bandwidth each, as on a real network. Puts may be delayed at random and so overtake each other, may arrive in
//! two pieces, and may have their notice repeated ([`Config`]); messages of a pair keep their order.
//!
//! # Where to look first, as the pattern of a new backend
//!
//! `address.rs` what the address bytes mean; `config.rs` what can be set; `endpoint.rs` the trait's methods;
//! `progress.rs` and `receive.rs` what happens when the endpoint is driven; `peer.rs` the state of a connection. `network.rs`,
//! `wires.rs`, `node.rs` and `parcel.rs` stand in for the operating system.
//!
//! # What is not simulated
//!
//! Lost parcels (a transport repairs them; here they would only be late), paths that are lost and repaired, and
//! memory mapped by peers. An endpoint that nobody drives is not taken for dead: partition it.

#![forbid(unsafe_code)]

mod address;
mod atomic;
mod config;
mod endpoint;
mod network;
mod node;
mod parcel;
mod peer;
mod progress;
mod random;
mod receive;
#[cfg(test)]
mod tests;
mod wires;

pub use config::{Config, Link};
pub use endpoint::Sim;
pub use network::Network;
