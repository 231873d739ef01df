//! What a user can set, and what can be wrong with it.

use crate::InterfaceSelector;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Settings of a [`Tcp`](crate::Tcp) transport. `TcpConfig::default()` suits one host as well as a cluster.
#[derive(Clone)]
#[non_exhaustive]
pub struct TcpConfig {
    /// The job's secret. Both sides of every connection prove that they know it. Without one, only endpoints
    /// whose random id was passed to `connect` are let in, and nothing is proven.
    pub secret: Option<[u8; 32]>,
    /// Which local addresses to listen on; `None`: all of them.
    pub interface: Option<InterfaceSelector>,
    /// Ports to listen on, the first free one of which is taken; `None`: any free port. Each process needs one
    /// port per address.
    pub ports: Option<RangeInclusive<u16>>,
    /// How long both sides may take from `connect` to `Connected`, retries included.
    pub connect_timeout: Duration,
    /// How long one attempt (one candidate address, or one stranger at our door) may take.
    pub handshake_timeout: Duration,
    /// How many connections that have proven nothing may be open at a time; beyond it the oldest is closed.
    pub half_open: usize,
    /// A connection that had nothing to say for this long says so.
    pub heartbeat: Duration,
    /// After this many silent intervals a peer is lost.
    pub missed_heartbeats: u32,
    /// Congestion control by the system's name. `None`: a loss-based one between processes of one host, where
    /// pacing costs and nothing is lost; the system's choice otherwise.
    pub congestion: Option<String>,
}

impl TcpConfig {
    /// How long a peer may be silent before it is lost.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.heartbeat.saturating_mul(self.missed_heartbeats.max(1))
    }
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            secret: None,
            interface: None,
            ports: None,
            connect_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(3),
            half_open: 128,
            heartbeat: Duration::from_secs(1),
            missed_heartbeats: 10,
            congestion: None,
        }
    }
}

impl fmt::Debug for TcpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpConfig")
            .field("secret", &self.secret.map(|_| "set"))
            .field("interface", &self.interface)
            .field("ports", &self.ports)
            .field("connect_timeout", &self.connect_timeout)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("half_open", &self.half_open)
            .field("heartbeat", &self.heartbeat)
            .field("missed_heartbeats", &self.missed_heartbeats)
            .field("congestion", &self.congestion)
            .finish()
    }
}

/// Why no transport could be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The selector fits no local address.
    #[error("no local address fits {selector:?}; name one of these: {available}")]
    NoInterface {
        /// What was asked for.
        selector: String,
        /// What there is, as `name address`.
        available: String,
    },
    /// The only port allowed is taken.
    #[error("{address} is in use by another program: choose another port, or a range of ports")]
    PortInUse {
        /// Address and port.
        address: SocketAddr,
    },
    /// Every port of the range is taken.
    #[error(
        "all {} ports {first}-{last} of {address} are in use: widen the range to at least one port per process",
        u32::from(*last) - u32::from(*first) + 1
    )]
    RangeExhausted {
        /// The local address.
        address: IpAddr,
        /// First port of the range.
        first: u16,
        /// Last port of the range.
        last: u16,
    },
    /// The range is no range.
    #[error("{first}-{last} is no range of ports: write the lower one first, both from 1 to 65535")]
    BadRange {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// The system allows this process no such port.
    #[error("not allowed to listen on {address}: ports below 1024 need a privilege; choose a higher one")]
    Denied {
        /// Address and port.
        address: SocketAddr,
    },
    /// The process has no descriptor left.
    #[error("no file descriptor left (the limit is {limit}): raise it with `ulimit -n`")]
    Descriptors {
        /// The limit of this process; 0: none, or unknown.
        limit: u64,
    },
    /// The system refused otherwise.
    #[error("{context}: system error {code}")]
    System {
        /// What was tried.
        context: &'static str,
        /// The raw code.
        code: i32,
    },
}

impl BindError {
    pub(crate) fn system(context: &'static str, code: i32) -> Self {
        match Errno::from_raw_os_error(code) {
            Errno::MFILE | Errno::NFILE => {
                Self::Descriptors { limit: getrlimit(Resource::Nofile).current.unwrap_or_default() }
            }
            _ => Self::System { context, code },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_is_not_printed() {
        let config = TcpConfig { secret: Some([0xab; 32]), ..TcpConfig::default() };
        let text = format!("{config:?}");
        assert!(text.contains("set") && !text.contains("171") && !text.contains("ab,"), "{text}");
    }

    #[test]
    fn errors_name_culprit_and_remedy() {
        let address = "127.0.0.1".parse().expect("an address");
        let text = BindError::RangeExhausted { address, first: 1, last: 65535 }.to_string();
        assert!(text.contains("all 65535 ports 1-65535 of 127.0.0.1") && text.contains("widen"), "{text}");
    }
}
