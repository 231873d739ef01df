//! How parcels get from one endpoint to another, and when.

use crate::address::NodeIndex;
use crate::node::Node;
use crate::parcel::{Body, ConnectionId, Order, Parcel};
use crate::random::Random;
use crate::{Config, Link};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) config: Config,
    seed: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: BTreeMap<Pair, Link>,
    /// Since when; `None`: since before the first `progress`.
    cuts: BTreeMap<Pair, Option<Instant>>,
    held: Vec<(NodeIndex, Parcel)>,
    /// The latest time anybody spoke of.
    clock: Option<Instant>,
    sequence: u64,
    connections: u64,
}

impl Wires {
    pub(crate) fn new(seed: u64, config: Config) -> Self {
        Self {
            config,
            seed,
            nodes: Vec::new(),
            links: BTreeMap::new(),
            cuts: BTreeMap::new(),
            held: Vec::new(),
            clock: None,
            sequence: 0,
            connections: 0,
        }
    }

    pub(crate) fn add_node(&mut self) -> NodeIndex {
        let index = self.nodes.len() as NodeIndex;
        self.nodes.push(Node::new(Random::new(self.seed, index)));
        index
    }

    pub(crate) fn next_connection(&mut self) -> ConnectionId {
        self.connections += 1;
        ConnectionId(self.connections)
    }

    /// Somebody says what time it is.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.clock = self.clock.max(Some(now));
        // Cuts from before the beginning begin with it.
        self.cuts.values_mut().filter(|since| since.is_none()).for_each(|since| *since = Some(now));
    }

    pub(crate) fn cut_since(&self, a: NodeIndex, b: NodeIndex) -> Option<Instant> {
        self.cuts.get(&pair(a, b)).copied().flatten()
    }

    pub(crate) fn is_alive(&self, node: NodeIndex) -> bool {
        self.nodes.get(node as usize).is_some_and(|node| node.alive)
    }

    /// Puts a parcel on the wire and returns when it has left its sender's port.
    pub(crate) fn ship(&mut self, to: NodeIndex, parcel: Parcel, now: Instant) -> Instant {
        let link = self.link(parcel.from, to);
        let occupancy = link.occupancy(parcel.body.size());
        let sender = &mut self.nodes[parcel.from as usize];
        let start = sender.out_free.map_or(now, |free| free.max(now));
        sender.out_free = Some(start + occupancy);
        if self.cuts.contains_key(&pair(parcel.from, to)) {
            self.held.push((to, parcel));
        } else {
            self.carry(to, parcel, start);
        }
        start + occupancy
    }

    fn carry(&mut self, to: NodeIndex, mut parcel: Parcel, start: Instant) {
        let (from, order) = (parcel.from, parcel.body.order());
        let link = self.link(from, to);
        let fate = self.draw(from, &parcel.body);

        let receiver = &mut self.nodes[to as usize];
        let reached = start + link.latency;
        let last_byte =
            receiver.in_free.map_or(reached, |free| free.max(reached)) + link.occupancy(parcel.body.size());
        receiver.in_free = Some(last_byte);
        // A delayed parcel waits on the way and keeps the port from nobody.
        let mut arrival = receiver.arrange(from, order, last_byte + fate.delay);
        if fate.torn
            && let Some(first) = parcel.tear()
        {
            let rest = receiver.arrange(from, order, arrival + fate.gap);
            self.deliver(to, Some(arrival), first);
            arrival = rest;
        }
        let echo = fate.echo.map(|delay| (arrival + delay, parcel.echo()));
        self.deliver(to, Some(arrival), parcel);
        if let Some((arrival, echo)) = echo {
            self.deliver(to, Some(arrival), echo);
        }
    }

    /// What chance has in store for a parcel.
    fn draw(&mut self, from: NodeIndex, body: &Body) -> Fate {
        let Config { jitter, duplicate, torn, .. } = self.config;
        let random = &mut self.nodes[from as usize].random;
        // Always as many numbers, so that one setting does not change what another one does.
        let (delay, gap, echo) = (random.duration(jitter), random.duration(jitter), random.duration(jitter));
        let (is_torn, is_echoed) = (random.chance(torn), random.chance(duplicate));
        let is_put = matches!(body, Body::Put { .. });
        Fate {
            delay: if body.order() == Order::Any { delay } else { Duration::ZERO },
            torn: is_put && is_torn,
            gap,
            echo: (matches!(body, Body::Put { notice: Some(_), .. }) && is_echoed).then_some(echo),
        }
    }

    fn deliver(&mut self, to: NodeIndex, arrival: Option<Instant>, parcel: Parcel) {
        self.sequence += 1;
        self.nodes[to as usize].deliver(arrival, self.sequence, parcel);
    }

    pub(crate) fn kill(&mut self, index: NodeIndex) {
        let Some(node) = self.nodes.get_mut(index as usize).filter(|node| node.alive) else { return };
        node.end();
        self.held.retain(|(to, parcel)| *to != index && parcel.from != index);
        for to in (0..self.nodes.len() as NodeIndex).filter(|to| *to != index) {
            self.announce_end(index, to);
        }
    }

    /// Lets `to` know that `from` is no more, after all that is under way from it.
    pub(crate) fn announce_end(&mut self, from: NodeIndex, to: NodeIndex) {
        let latency = self.link(from, to).latency;
        let parcel = Parcel { from, connection: ConnectionId(0), body: Body::Gone, credit: None };
        if self.cuts.contains_key(&pair(from, to)) {
            self.held.push((to, parcel));
        } else {
            let receiver = &mut self.nodes[to as usize];
            let arrival = self.clock.map(|clock| receiver.arrange(from, Order::AfterAll, clock + latency));
            self.deliver(to, arrival, parcel);
        }
    }

    pub(crate) fn cut(&mut self, pair: Pair) {
        self.cuts.entry(pair).or_insert(self.clock);
        // Both wait for something else now.
        self.wake_all(&BTreeSet::from([pair.0, pair.1]));
    }

    pub(crate) fn heal(&mut self, healed: Pair) {
        if self.cuts.remove(&healed).is_none() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        for (to, parcel) in held {
            if pair(parcel.from, to) != healed {
                self.held.push((to, parcel));
            } else if let Some(now) = self.clock {
                self.carry(to, parcel, now);
            } else {
                self.deliver(to, None, parcel);
            }
        }
    }

    pub(crate) fn wake_all(&mut self, nodes: &BTreeSet<NodeIndex>) {
        for node in nodes {
            self.nodes[*node as usize].wake();
        }
    }

    fn link(&self, a: NodeIndex, b: NodeIndex) -> Link {
        self.links.get(&pair(a, b)).copied().unwrap_or(self.config.link)
    }
}

/// Two endpoints, the smaller one first.
pub(crate) type Pair = (NodeIndex, NodeIndex);

pub(crate) fn pair(a: NodeIndex, b: NodeIndex) -> Pair {
    (a.min(b), a.max(b))
}

/// What chance does to a parcel.
struct Fate {
    delay: Duration,
    /// Whether a put arrives in two pieces, and how long after the first the second does.
    torn: bool,
    gap: Duration,
    /// How long after the bytes the notice is repeated.
    echo: Option<Duration>,
}
