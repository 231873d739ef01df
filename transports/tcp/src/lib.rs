//! TCP transport of Gradwire.
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
