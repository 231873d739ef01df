//! Latency and bandwidth of the transport beside a bare socket, in one run on one host:
//! `cargo run --release -p gradwire-transport-tcp --example pingpong [ROUNDS]`.
//!
//! Two threads, each on a core of its own where there are two, talk over loopback and never sleep. A bare socket
//! does the same with the same congestion control, and the two take turns, so that a disturbed moment disturbs both.
//! Medians, and the least of all rounds, which is what a quiet machine would show; ratio is our time divided by its.

use gradwire_transport::{
    Activity, Address, Event, EventRef, Events, Notice, Peer, Posted, Put, Region, RegionKey, RemoteRegion,
    Tag, Token, Transport,
};
use gradwire_transport_tcp::{Tcp, TcpConfig};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const SIZES: [usize; 5] = [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20];
const LARGEST: usize = SIZES[SIZES.len() - 1];
const PEER: Peer = Peer::new(0, 0);

fn main() {
    let rounds = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(5_000);
    let (a, b) = sockets();
    let (to_a, from_b) = channel();
    let (to_b, from_a) = channel();
    let other = std::thread::spawn(move || measure(Bare(b), to_a, from_a, 1, rounds));
    println!(
        "{:<24}{:>10}{:>10}{:>7}{:>12}{:>10}{:>7}",
        "what", "bare us", "ours us", "ratio", "bare least", "ours", "ratio"
    );
    measure(Bare(a), to_b, from_b, 0, rounds);
    other.join().expect("the other side");
}

/// What the two sides tell each other beside the connection under test.
type Letter = Vec<u8>;

fn measure(mut bare: Bare, to: Sender<Letter>, from: Receiver<Letter>, side: usize, rounds: usize) {
    pin(side);
    let mut ours = Ours::new(&to, &from);
    let first = side == 0;
    let row = |name: String, rounds: usize, bare: &mut dyn FnMut(), ours: &mut dyn FnMut()| {
        let (mut bare_times, mut our_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare_times.push(timed(bare));
            our_times.push(timed(ours));
        }
        if first {
            let ((bare, bare_least), (ours, ours_least)) = (summary(bare_times), summary(our_times));
            let (ratio, ratio_least) = (ours / bare, ours_least / bare_least);
            println!(
                "{name:<24}{bare:>10.2}{ours:>10.2}{ratio:>7.2}{bare_least:>12.2}{ours_least:>10.2}{ratio_least:>7.2}"
            );
        }
    };
    let batch = 20;
    let mut small = || (0..batch).for_each(|_| bare.ping(first));
    row("8 B message, 20 x RTT".into(), rounds / batch, &mut small, &mut || {
        (0..batch).for_each(|_| ours.ping(first));
    });
    row("8 B put, 20 x RTT".into(), rounds / batch, &mut small, &mut || {
        (0..batch).for_each(|_| ours.ping_put(first));
    });
    let (outgoing, mut incoming) = (vec![1; LARGEST], vec![0; LARGEST]);
    for size in SIZES {
        let rounds = ((64 << 20) / size).clamp(3, (rounds / 10).max(3));
        row(
            format!("{} KiB exchange", size >> 10),
            rounds,
            &mut || bare.exchange(&outgoing[..size], &mut incoming[..size]),
            &mut || ours.exchange(size),
        );
    }
    ours.leave(&to, &from);
}

fn timed(work: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The median and the least, in microseconds.
fn summary(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let micros = |index: usize| times[index].as_secs_f64() * 1e6;
    (micros(times.len() / 2), micros(0))
}

fn pin(side: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    set.set(side % cores);
    let _ = sched_setaffinity(None, &set);
}

/// A socket that is never waited for.
struct Bare(TcpStream);

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let a = TcpStream::connect(listener.local_addr().expect("an address")).expect("a listener");
    let (b, _) = listener.accept().expect("a caller");
    for socket in [&a, &b] {
        socket.set_nonblocking(true).expect("non-blocking");
        socket.set_nodelay(true).expect("no delay");
        let _ = sockopt::set_tcp_congestion(socket, "cubic")
            .or_else(|_| sockopt::set_tcp_congestion(socket, "reno"));
    }
    (a, b)
}

impl Bare {
    fn ping(&mut self, first: bool) {
        let mut bytes = [7; 8];
        for sending in [first, !first] {
            if sending {
                send(&self.0, &bytes, SendFlags::empty()).expect("room");
            } else {
                while recv(&self.0, &mut bytes, RecvFlags::empty()) == Err(Errno::AGAIN) {}
            }
        }
    }

    fn exchange(&mut self, outgoing: &[u8], incoming: &mut [u8]) {
        let (mut sent, mut received) = (0, 0);
        while sent < outgoing.len() || received < incoming.len() {
            let end = outgoing.len().min(sent + (1 << 20));
            if sent < end {
                sent += send(&self.0, &outgoing[sent..end], SendFlags::empty()).unwrap_or(0);
            }
            if received < incoming.len() {
                received +=
                    recv(&self.0, &mut incoming[received..], RecvFlags::empty()).map_or(0, |(_, len)| len);
            }
        }
    }
}

struct Ours {
    tcp: Tcp,
    events: Events,
    source: Region,
    remote: RemoteRegion,
    messages: usize,
    notices: usize,
    done: usize,
}

impl Ours {
    fn new(to: &Sender<Letter>, from: &Receiver<Letter>) -> Self {
        let mut config = TcpConfig::default();
        config.interface = Some("127.0.0.1".parse().expect("a selector"));
        let mut tcp = Tcp::new(config).expect("an endpoint");
        to.send(tcp.address().as_bytes().to_vec()).expect("the other side");
        let address = Address::from_bytes(&from.recv().expect("the other side")).expect("an address");
        tcp.connect(PEER, &address).expect("an address");
        let mut events = Events::new();
        while !events.iter().any(|event| event == EventRef::Other(&Event::Connected(PEER))) {
            events.clear();
            tcp.progress(Instant::now(), &mut events).expect("progress");
        }
        let (source, _) = tcp.allocate(LARGEST).expect("memory");
        let (target, _) = tcp.allocate(LARGEST).expect("memory");
        to.send(tcp.export(target).expect("a region").as_bytes().to_vec()).expect("the other side");
        let key = from.recv().expect("the other side").try_into().expect("a key");
        let remote = tcp.import(PEER, &RegionKey::from_bytes(key)).expect("a key");
        Self { tcp, events, source, remote, messages: 0, notices: 0, done: 0 }
    }

    fn turn(&mut self) -> Activity {
        self.events.clear();
        let activity = self.tcp.progress(Instant::now(), &mut self.events).expect("progress");
        for event in self.events.iter() {
            match event {
                EventRef::Received(..) => self.messages += 1,
                EventRef::Other(Event::Notified(..)) => self.notices += 1,
                EventRef::Other(Event::Done(_)) => self.done += 1,
                other => panic!("{other:?}"),
            }
        }
        activity
    }

    fn ping(&mut self, first: bool) {
        let due = self.messages + 1;
        for sending in [first, !first] {
            if sending {
                assert_eq!(self.tcp.send(PEER, Tag(1), &[7; 8]), Ok(Posted::Queued));
                self.turn();
            } else {
                while self.messages < due {
                    self.turn();
                }
            }
        }
    }

    fn put(&mut self, len: usize) {
        let put = Put {
            token: Token(1),
            len,
            source: self.source,
            source_offset: 0,
            target: self.remote,
            target_offset: 0,
            notice: Some(Notice(1)),
        };
        assert_eq!(self.tcp.put(&put), Ok(Posted::Queued));
    }

    fn ping_put(&mut self, first: bool) {
        let due = self.notices + 1;
        for sending in [first, !first] {
            if sending {
                self.put(8);
                self.turn();
            } else {
                while self.notices < due {
                    self.turn();
                }
            }
        }
    }

    fn exchange(&mut self, len: usize) {
        let due = (self.notices + 1, self.done + 1);
        self.put(len);
        while self.notices < due.0 || self.done < due.1 {
            self.turn();
        }
    }

    /// Stays until the other side has all it needs.
    fn leave(&mut self, to: &Sender<Letter>, from: &Receiver<Letter>) {
        to.send(Vec::new()).expect("the other side");
        while from.try_recv().is_err() {
            self.turn();
        }
    }
}
