//! What can be set.

use gradwire_transport::Limits;
use std::time::Duration;

/// How a network behaves. The default is a quick and blameless one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Each link that [`Network::set_link`](crate::Network::set_link) says nothing else of.
    pub link: Link,
    /// How much a transport takes; `latency` and `bandwidth` are ignored here and follow from `link`.
    pub limits: Limits,
    /// A put takes up to this much longer than the link says, evenly spread, so that puts overtake each other.
    pub jitter: Duration,
    /// The share of notices that are raised a second time.
    pub duplicate: f64,
    /// The share of puts that arrive in two pieces, with time between them.
    pub torn: f64,
    /// How long to wait for the other side to connect as well.
    pub connect_timeout: Duration,
    /// After being cut off for this long a peer is lost.
    pub silence: Duration,
}

/// One direction between two endpoints.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// From the first byte sent to the first byte received: alpha.
    pub latency: Duration,
    /// Bytes per second: the inverse of beta. May be infinite.
    pub bandwidth: f64,
}

impl Config {
    /// A network that does all it is allowed to: puts that overtake each other and arrive in pieces, repeated
    /// notices, queues of four operations.
    #[must_use]
    pub fn hostile() -> Self {
        let mut limits = Limits::MODEST;
        limits.outstanding = 4;
        Self { limits, jitter: Duration::from_micros(50), duplicate: 0.2, torn: 0.5, ..Self::default() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            link: Link { latency: Duration::from_micros(2), bandwidth: 10e9 },
            limits: Limits::MODEST,
            jitter: Duration::ZERO,
            duplicate: 0.0,
            torn: 0.0,
            connect_timeout: Duration::from_secs(30),
            silence: Duration::from_secs(10),
        }
    }
}

impl Link {
    /// What `bytes` take to pass a port. At most a day, whatever the bandwidth.
    pub(crate) fn occupancy(&self, bytes: usize) -> Duration {
        const DAY: Duration = Duration::from_secs(86_400);
        Duration::try_from_secs_f64(bytes as f64 / self.bandwidth).map_or(DAY, |time| time.min(DAY))
    }
}
