//! TCP transport of Gradwire.
#![forbid(unsafe_code)]

mod address;
mod config;
mod handshake;
mod interface;
mod listen;
mod socket;

pub use config::{BindError, TcpConfig};
pub use interface::{InterfaceSelector, SelectorError};
