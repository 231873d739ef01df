//! The network as a test sees it: what it is made of, and what is done to it.

use crate::address::{self, NodeIndex};
use crate::wires::{Pair, Wires, pair};
use crate::{Config, Link, Sim};
use gradwire_transport::Address;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A network. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Network {
    shared: Arc<Shared>,
}

impl Network {
    /// A network on which what is left to chance follows from `seed`.
    #[must_use]
    pub fn new(seed: u64, config: Config) -> Self {
        // Networks of one process must not be mixed up; nothing else depends on the number.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::new(Shared { number, wires: Mutex::new(Wires::new(seed, config)) }) }
    }

    /// A new endpoint. Dropping it is the sudden end of its process.
    #[must_use]
    pub fn endpoint(&self) -> Sim {
        self.endpoint_with_secret(0)
    }

    /// A new endpoint that does not know the job's secret: everybody refuses it.
    #[must_use]
    pub fn stranger(&self) -> Sim {
        self.endpoint_with_secret(1)
    }

    /// Sets both directions between two endpoints.
    pub fn set_link(&self, a: &Address, b: &Address, link: Link) {
        if let Some(pair) = self.pair(a, b) {
            self.shared.wires().links.insert(pair, link);
        }
    }

    /// Ends a process: its endpoint answers every call with an error, and its peers lose it.
    pub fn kill(&self, address: &Address) {
        if let Ok(node) = address::decode(self.shared.number, address) {
            self.shared.wires().kill(node);
        }
    }

    /// Cuts the link between two endpoints. What is sent is held; [`Config::silence`] later they lose each other.
    pub fn partition(&self, a: &Address, b: &Address) {
        if let Some(pair) = self.pair(a, b) {
            self.shared.wires().cut(pair);
        }
    }

    /// Undoes [`partition`](Self::partition): what was held arrives.
    pub fn heal(&self, a: &Address, b: &Address) {
        if let Some(pair) = self.pair(a, b) {
            self.shared.wires().heal(pair);
        }
    }

    /// The first time after `now` at which a parcel arrives, a port becomes free or patience ends, for any endpoint
    /// that lives: where to set the clock when all are idle. `None` when nothing will happen by itself.
    #[must_use]
    pub fn next_event(&self, now: Instant) -> Option<Instant> {
        let wires = self.shared.wires();
        wires.nodes.iter().filter(|node| node.alive).filter_map(|node| node.next_event(now)).min()
    }

    fn endpoint_with_secret(&self, secret: u64) -> Sim {
        let mut wires = self.shared.wires();
        let index = wires.add_node();
        let (config, link) = (&wires.config, wires.config.link);
        let mut limits = config.limits.clone();
        (limits.latency, limits.bandwidth) = (link.latency, link.bandwidth);
        Sim::new(Arc::clone(&self.shared), index, secret, limits, config.connect_timeout, config.silence)
    }

    /// `None` when one of them is not of this network.
    fn pair(&self, a: &Address, b: &Address) -> Option<Pair> {
        let known = self.shared.wires().nodes.len();
        let decode = |address| {
            address::decode(self.shared.number, address).ok().filter(|node| (*node as usize) < known)
        };
        Some(pair(decode(a)?, decode(b)?))
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// Which network of this process.
    pub(crate) number: u64,
    wires: Mutex<Wires>,
}

impl Shared {
    pub(crate) fn wires(&self) -> MutexGuard<'_, Wires> {
        // A panic of a test's thread elsewhere leaves the wires usable: no method leaves them half changed.
        self.wires.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `node` is woken by: the end it waits at.
    pub(crate) fn hang_bell(&self, node: NodeIndex) -> Option<UnixStream> {
        let (far, near) = UnixStream::pair().ok()?;
        far.set_nonblocking(true).ok()?;
        near.set_nonblocking(true).ok()?;
        self.wires().nodes[node as usize].hang(far);
        Some(near)
    }
}
