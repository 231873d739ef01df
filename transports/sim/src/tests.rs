//! Does the network behave as configured? That it keeps the contract is for the conformance suite.

use crate::{Config, Link, Network, Sim};
use gradwire_transport::{
    Address, Allocation, Event, EventRef, Events, LossReason, Notice, Peer, Posted, Put, Region,
    RemoteRegion, Tag, Token, Transport, TransportError,
};
use std::time::{Duration, Instant};

const MICROSECOND: Duration = Duration::from_micros(1);

/// Some endpoints of one network, all connected, with a record of what happened to whom and when.
struct World {
    network: Network,
    endpoints: Vec<Sim>,
    start: Instant,
    now: Instant,
    record: Vec<(Duration, usize, String)>,
    events: Events,
}

fn peer(index: usize) -> Peer {
    Peer::new(index as u32, 0)
}

impl World {
    fn new(seed: u64, config: Config, size: usize) -> Self {
        let network = Network::new(seed, config);
        let endpoints: Vec<Sim> = (0..size).map(|_| network.endpoint()).collect();
        let start = Instant::now();
        let mut world =
            Self { network, endpoints, start, now: start, record: Vec::new(), events: Events::new() };
        for from in 0..size {
            for to in (0..size).filter(|to| *to != from) {
                let address = world.address(to);
                world.endpoints[from].connect(peer(to), &address).unwrap();
            }
        }
        world.run();
        assert_eq!(world.record.len(), size * (size - 1));
        world.record.clear();
        (world.start, world.now) = (world.now, world.now);
        world
    }

    fn address(&self, index: usize) -> Address {
        self.endpoints[index].address()
    }

    /// Until nothing happens any more.
    fn run(&mut self) {
        self.run_until(self.now + Duration::from_secs(3600));
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            while self.turn() {}
            match self.network.next_event(self.now) {
                Some(next) if next <= end => self.now = next,
                _ => return,
            }
        }
    }

    /// `false` when nobody had anything to do.
    fn turn(&mut self) -> bool {
        let mut is_busy = false;
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            self.events.clear();
            // Who was killed says so and is left alone.
            let Ok(activity) = endpoint.progress(self.now, &mut self.events) else { continue };
            is_busy |= activity == gradwire_transport::Activity::Busy;
            for event in self.events.iter() {
                self.record.push((self.now - self.start, index, describe(&event)));
            }
        }
        is_busy
    }

    /// When an endpoint saw something for the first time.
    fn time_of(&self, index: usize, what: &str) -> Option<Duration> {
        let found = self.record.iter().find(|(_, at, event)| *at == index && event == what);
        found.map(|(time, ..)| *time)
    }

    /// Memory of `to`, as `from` may reach it, beside memory of `from`.
    fn share(&mut self, from: usize, to: usize, len: usize) -> (Region, RemoteRegion, Allocation) {
        let (source, _) = self.endpoints[from].allocate(len).unwrap();
        let (target, allocation) = self.endpoints[to].allocate(len).unwrap();
        let key = self.endpoints[to].export(target).unwrap();
        (source, self.endpoints[from].import(peer(to), &key).unwrap(), allocation)
    }

    /// Puts `count` pieces of `len` bytes; returns how long the last one takes to arrive.
    fn transfer(&mut self, pairs: &[(usize, usize)], count: u16, len: usize) -> Duration {
        let shared: Vec<_> = pairs.iter().map(|&(from, to)| self.share(from, to, len)).collect();
        let begin = self.now;
        for piece in 0..count {
            for (&(from, _), (source, target, _)) in pairs.iter().zip(&shared) {
                while self.endpoints[from].put(&put(len, *source, *target, piece)).unwrap() == Posted::Full {
                    assert!(self.turn() || self.advance(), "full for ever");
                }
            }
        }
        self.run();
        let last = self.record.iter().rev().find(|(_, _, event)| event.starts_with("Notified")).unwrap().0;
        self.start + last - begin
    }

    fn advance(&mut self) -> bool {
        self.network.next_event(self.now).map(|next| self.now = next).is_some()
    }
}

fn put(len: usize, source: Region, target: RemoteRegion, piece: u16) -> Put {
    Put {
        token: Token(piece.into()),
        len,
        source,
        source_offset: 0,
        target,
        target_offset: 0,
        notice: Some(Notice::new(0, piece)),
    }
}

fn describe(event: &EventRef<'_>) -> String {
    match event {
        EventRef::Received(peer, tag, bytes) => format!("{peer:?} {tag:?} {bytes:?}"),
        EventRef::Other(event) => format!("{event:?}"),
        _ => unreachable!("no other event is made here"),
    }
}

fn slow() -> Config {
    // A byte a nanosecond, so that times are easy to foretell.
    Config { link: Link { latency: 10 * MICROSECOND, bandwidth: 1e9 }, ..Config::default() }
}

fn about(found: Duration, expected: Duration) -> bool {
    found.abs_diff(expected) < expected / 50
}

#[test]
fn a_message_takes_its_latency_and_its_length() {
    let mut world = World::new(1, slow(), 2);
    let before = world.now;
    let _ = world.endpoints[0].send(peer(1), Tag(1), &[0; 936]).unwrap();
    world.run();
    // The header takes 64 bytes.
    assert_eq!(world.now - before, 11 * MICROSECOND);
}

#[test]
fn ports_are_shared() {
    let alone = World::new(1, slow(), 4).transfer(&[(0, 1)], 100, 100_000);
    assert!(about(alone, Duration::from_millis(10)), "{alone:?}");
    let apart = World::new(1, slow(), 4).transfer(&[(0, 1), (2, 3)], 100, 100_000);
    assert!(about(apart, alone), "{apart:?}");
    let to_one = World::new(1, slow(), 4).transfer(&[(0, 1), (2, 1)], 100, 100_000);
    assert!(about(to_one, 2 * alone), "{to_one:?}");
    let from_one = World::new(1, slow(), 4).transfer(&[(0, 1), (0, 3)], 100, 100_000);
    assert!(about(from_one, 2 * alone), "{from_one:?}");
    let both_ways = World::new(1, slow(), 4).transfer(&[(0, 1), (1, 0)], 100, 100_000);
    assert!(about(both_ways, alone), "{both_ways:?}");
}

#[test]
fn one_link_can_be_slower_than_the_others() {
    let mut world = World::new(1, slow(), 3);
    let (a, b) = (world.address(0), world.address(1));
    world.network.set_link(&b, &a, Link { latency: Duration::from_millis(7), bandwidth: f64::INFINITY });
    for to in [1, 2] {
        let _ = world.endpoints[0].send(peer(to), Tag(1), b"x").unwrap();
    }
    world.run();
    let message = format!("{:?} Tag(1) [120]", peer(0));
    assert_eq!(world.time_of(1, &message), Some(Duration::from_millis(7)));
    assert!(world.time_of(2, &message).unwrap() < 11 * MICROSECOND);
}

/// What happens to forty puts and some messages on a hostile network.
fn hostile_record(seed: u64) -> Vec<(Duration, usize, String)> {
    let mut world = World::new(seed, Config::hostile(), 3);
    world.transfer(&[(0, 1), (1, 2), (2, 0)], 40, 1000);
    for tag in 0..4 {
        let _ = world.endpoints[0].send(peer(2), Tag(tag), &[tag as u8]).unwrap();
    }
    world.run();
    world.record
}

#[test]
fn equal_seeds_behave_alike_and_others_do_not() {
    let record = hostile_record(5);
    assert_eq!(record, hostile_record(5));
    assert_ne!(record, hostile_record(6));
}

#[test]
fn a_hostile_network_reorders_and_repeats() {
    let record = hostile_record(7);
    let notices: Vec<&String> = record
        .iter()
        .filter(|(_, at, event)| *at == 1 && event.starts_with("Notified"))
        .map(|(.., event)| event)
        .collect();
    let mut first: Vec<&String> = Vec::new();
    for notice in &notices {
        if !first.contains(notice) {
            first.push(notice);
        }
    }
    assert_eq!(first.len(), 40, "each put arrives");
    assert!(notices.len() > 40, "no notice was repeated");
    let in_order: Vec<String> =
        (0..40).map(|piece| format!("{:?}", Event::Notified(peer(0), Notice::new(0, piece)))).collect();
    assert!(first.iter().zip(&in_order).any(|(found, posted)| *found != posted), "no put was overtaken");
}

#[test]
fn a_torn_put_can_be_seen_half_done() {
    let mut config = Config::hostile();
    config.torn = 1.0;
    let mut world = World::new(1, config, 2);
    let (source, target, _allocation) = world.share(0, 1, 1000);
    world.endpoints[0].regions.bytes_mut(source, 0, 1000).unwrap().fill(1);
    let _ = world.endpoints[0].put(&put(1000, source, target, 0)).unwrap();
    let mut was_half_done = false;
    let notified =
        |world: &World| world.record.iter().any(|(_, at, event)| *at == 1 && event.starts_with("Notified"));
    while !notified(&world) {
        let written = world.endpoints[1].regions.bytes(Region::new(0, 0), 0, 1000).unwrap();
        was_half_done |= written[..500] == [1; 500] && written[500..] == [0; 500];
        assert!(world.turn() || world.advance());
    }
    assert!(was_half_done);
    assert_eq!(world.endpoints[1].regions.bytes(Region::new(0, 0), 0, 1000).unwrap(), [1; 1000]);
}

#[test]
fn a_partition_holds_what_is_sent_until_it_heals() {
    let mut world = World::new(1, slow(), 3);
    let (a, b) = (world.address(0), world.address(1));
    world.network.partition(&a, &b);
    for to in [1, 2] {
        let _ = world.endpoints[0].send(peer(to), Tag(1), b"x").unwrap();
    }
    world.run_until(world.start + Duration::from_secs(5));
    let message = format!("{:?} Tag(1) [120]", peer(0));
    assert_eq!(world.time_of(1, &message), None);
    assert!(world.time_of(2, &message).is_some());
    world.now = world.start + Duration::from_secs(5);
    world.turn();
    world.network.heal(&b, &a);
    world.run();
    assert!(world.time_of(1, &message).unwrap() >= Duration::from_secs(5));
    assert_eq!(world.record.iter().filter(|(.., event)| event.starts_with("PeerLost")).count(), 0);
}

#[test]
fn a_partition_that_lasts_ends_the_connection_on_both_sides() {
    let mut world = World::new(1, slow(), 3);
    let (a, b) = (world.address(0), world.address(1));
    world.network.partition(&a, &b);
    world.run();
    let silence = Config::default().silence;
    for (index, other) in [(0, 1), (1, 0)] {
        let lost = format!("{:?}", Event::PeerLost(peer(other), LossReason::Silent(silence)));
        assert_eq!(world.time_of(index, &lost), Some(silence));
    }
    assert!(world.record.iter().all(|(_, index, _)| *index != 2), "{:?}", world.record);
}

#[test]
fn the_killed_are_told() {
    let mut world = World::new(1, slow(), 2);
    let address = world.address(1);
    world.network.kill(&address);
    assert!(matches!(
        world.endpoints[1].send(peer(0), Tag(1), b"?"),
        Err(TransportError::System { context, .. }) if context.contains("killed")
    ));
    assert!(world.endpoints[1].progress(world.now, &mut Events::new()).is_err());
    world.run();
    let lost = format!("{:?}", Event::PeerLost(peer(1), LossReason::Broken { code: 0 }));
    assert_eq!(world.time_of(0, &lost), Some(10 * MICROSECOND));
}
