//! Endpoints of one process, driven in turn.

use gradwire_transport::{Activity, Allocation, Event, EventRef, Events, Peer, Region, Transport};
use gradwire_transport_tcp::{Tcp, TcpConfig};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longer than anything here should take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const SECRET: [u8; 32] = [0x5a; 32];

pub(crate) fn config(interface: &str) -> TcpConfig {
    let mut config = TcpConfig::default();
    config.interface = Some(interface.parse().expect("a selector"));
    config.secret = Some(SECRET);
    config
}

/// What happened to one endpoint, with owned messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Happened {
    Received(Peer, u32, Vec<u8>),
    Other(Event),
}

/// An endpoint and all that has happened to it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) tcp: Tcp,
    pub(crate) happened: Vec<Happened>,
    events: Events,
}

impl Endpoint {
    pub(crate) fn new(config: TcpConfig) -> Self {
        Self::over(Tcp::new(config).expect("an endpoint"))
    }

    pub(crate) fn over(tcp: Tcp) -> Self {
        Self { tcp, happened: Vec::new(), events: Events::new() }
    }

    pub(crate) fn turn(&mut self, now: Instant) -> Activity {
        self.events.clear();
        let activity = self.tcp.progress(now, &mut self.events).expect("progress");
        for event in self.events.iter() {
            self.happened.push(match event {
                EventRef::Received(peer, tag, bytes) => Happened::Received(peer, tag.0, bytes.to_vec()),
                EventRef::Other(event) => Happened::Other(event.clone()),
                other => panic!("an event of a new kind: {other:?}"),
            });
        }
        activity
    }

    pub(crate) fn saw(&self, event: &Event) -> bool {
        self.happened.contains(&Happened::Other(event.clone()))
    }

    /// The events of this kind, in order.
    pub(crate) fn pick<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        let event = |happened: &Happened| match happened {
            Happened::Other(event) => pick(event),
            Happened::Received(..) => None,
        };
        self.happened.iter().filter_map(event).collect()
    }

    pub(crate) fn messages(&self) -> Vec<(u32, Vec<u8>)> {
        let message = |happened: &Happened| match happened {
            Happened::Received(_, tag, bytes) => Some((*tag, bytes.clone())),
            Happened::Other(_) => None,
        };
        self.happened.iter().filter_map(message).collect()
    }

    /// Memory whose bytes are `seed`, `seed + 1`, ... `seed + 250`, and again from `seed`.
    pub(crate) fn memory(&mut self, len: usize, seed: u8) -> (Region, Allocation) {
        let (region, allocation) = self.tcp.allocate(len).expect("memory");
        let period: Vec<u8> = (0..251).map(|index| seed.wrapping_add(index)).collect();
        write(&allocation, &period.repeat(len / 251 + 1)[..len]);
        (region, allocation)
    }
}

/// Drives all endpoints until `done`.
pub(crate) fn drive<const N: usize>(
    mut ends: [&mut Endpoint; N],
    done: impl Fn(&[&mut Endpoint; N]) -> bool,
) {
    let start = Instant::now();
    while !done(&ends) {
        let mut idle = true;
        for end in &mut ends {
            idle &= end.turn(Instant::now()) == Activity::Idle;
        }
        assert!(start.elapsed() < PATIENCE, "still not done: {ends:#?}");
        if idle {
            std::thread::yield_now();
        }
    }
}

/// Where an endpoint on one IPv4 address listens.
pub(crate) fn door_of(end: &Endpoint) -> SocketAddr {
    let address = end.tcp.address();
    let port = address.as_bytes()[PORT].try_into().expect("two bytes");
    SocketAddr::from(([127, 0, 0, 1], u16::from_le_bytes(port)))
}

/// Where the first port stands in an address.
pub(crate) const PORT: std::ops::Range<usize> = 42..44;

/// Two endpoints, the first of which calls the second when they are introduced.
pub(crate) fn caller_and_called(config: &TcpConfig) -> (Endpoint, Endpoint) {
    loop {
        let (a, b) = (Endpoint::new(config.clone()), Endpoint::new(config.clone()));
        // The lesser id calls; ids stand behind the first 8 bytes of an address.
        if a.tcp.address().as_bytes()[8..24] < b.tcp.address().as_bytes()[8..24] {
            return (a, b);
        }
    }
}

pub(crate) fn peer(index: u32) -> Peer {
    Peer::new(index, 7)
}

/// Two endpoints; each calls the other by the number of the other.
pub(crate) fn introduce(a: &mut Endpoint, b: &mut Endpoint) {
    a.tcp.connect(peer(1), &b.tcp.address()).expect("an address");
    b.tcp.connect(peer(0), &a.tcp.address()).expect("an address");
}

/// Two connected endpoints: 0 knows the other as peer 1, and the other way round.
pub(crate) fn pair_on(interface: &str) -> (Endpoint, Endpoint) {
    pair_with(&config(interface))
}

pub(crate) fn pair_with(config: &TcpConfig) -> (Endpoint, Endpoint) {
    let (mut a, mut b) = (Endpoint::new(config.clone()), Endpoint::new(config.clone()));
    introduce(&mut a, &mut b);
    drive([&mut a, &mut b], |[a, b]| a.saw(&Event::Connected(peer(1))) && b.saw(&Event::Connected(peer(0))));
    (a, b)
}

pub(crate) fn pair() -> (Endpoint, Endpoint) {
    pair_on("127.0.0.1")
}

pub(crate) fn write(memory: &Allocation, bytes: &[u8]) {
    assert_eq!(memory.len(), bytes.len());
    // SAFETY: the allocation is valid for writes of `len` bytes and overlaps no slice, and the transport that
    // shares it is driven by this very thread.
    unsafe { memory.address().as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

pub(crate) fn read(memory: &Allocation) -> Vec<u8> {
    // SAFETY: the allocation is valid for reads of `len` initialised bytes, and the transport that shares it is
    // driven by this very thread, which copies the bytes and keeps no reference.
    unsafe { std::slice::from_raw_parts(memory.address().as_ptr(), memory.len()) }.to_vec()
}
