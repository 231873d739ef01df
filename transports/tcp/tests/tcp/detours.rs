//! Connections that come from somewhere else than they seem to, through something that is not reliable.

use crate::support::{Endpoint, PORT, caller_and_called, config, door_of, drive, peer};
use gradwire_transport::{Address, Event, LossReason, Posted, Tag, Transport};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Passes connections on to `door`, but resets the first `resets`, each a little later than the one before.
fn proxy(door: SocketAddr, resets: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.2:0").expect("a port");
    let here = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (index, near) in listener.incoming().enumerate() {
            let near = near.expect("a caller");
            if index == 0 && resets > 0 {
                let _ = rustix::net::sockopt::set_socket_linger(&near, Some(Duration::ZERO));
                continue;
            }
            let far = TcpStream::connect(door).expect("the endpoint behind");
            // 80 bytes are a hello, 48 more a proof: cut before, between and behind them.
            let allowance = if index < resets { [79, 80, 127, 128][index % 4] } else { u64::MAX };
            pass(near.try_clone().expect("a copy"), far.try_clone().expect("a copy"), allowance);
            pass(far, near, u64::MAX);
        }
    });
    here
}

/// Copies up to `allowance` bytes on a thread of its own, then breaks the connection.
fn pass(from: TcpStream, to: TcpStream, allowance: u64) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut (&from).take(allowance), &mut &to);
        for end in [from, to] {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
    });
}

/// Has `a` take the way over a proxy on 127.0.0.2 to `b`.
fn connect_through(proxy: SocketAddr, a: &mut Endpoint, b: &mut Endpoint) {
    let mut detour = b.tcp.address().as_bytes().to_vec();
    detour[PORT].copy_from_slice(&proxy.port().to_le_bytes());
    detour[47] = 2;
    a.tcp.connect(peer(1), &Address::from_bytes(&detour).expect("short")).expect("an address");
    b.tcp.connect(peer(0), &a.tcp.address()).expect("an address");
}

/// What stands in the way of connections and keeps account of them.
#[derive(Default)]
struct Middlebox {
    /// Bytes that came from the caller and from the called.
    passed: [AtomicU64; 2],
    /// It has forgotten the connection: what comes is dropped without a word.
    has_forgotten: AtomicBool,
}

impl Middlebox {
    fn before(door: SocketAddr) -> (SocketAddr, Arc<Self>) {
        let listener = TcpListener::bind("127.0.0.2:0").expect("a port");
        let here = listener.local_addr().expect("an address");
        let middlebox = Arc::<Self>::default();
        let own = middlebox.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.expect("a caller");
                let far = TcpStream::connect(door).expect("the endpoint behind");
                own.pass(0, near.try_clone().expect("a copy"), far.try_clone().expect("a copy"));
                own.pass(1, far, near);
            }
        });
        (here, middlebox)
    }

    fn pass(self: &Arc<Self>, side: usize, mut from: TcpStream, mut to: TcpStream) {
        let own = self.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = from.read(&mut bytes) {
                own.passed[side].fetch_add(len as u64, Ordering::Relaxed);
                if !own.has_forgotten.load(Ordering::Relaxed) && to.write_all(&bytes[..len]).is_err() {
                    break;
                }
            }
        });
    }

    fn passed(&self) -> [u64; 2] {
        self.passed.each_ref().map(|passed| passed.load(Ordering::Relaxed))
    }
}

/// Middleboxes forget connections on which nothing passes for some time, often a minute, and drop what comes later. Five
/// minutes of silence are none to them; and if one does forget, both sides learn of it.
#[test]
fn an_idle_connection_is_kept_alive_in_middleboxes() {
    let (mut a, mut b) = caller_and_called(&config("127.0.0.1"));
    let (proxy, middlebox) = Middlebox::before(door_of(&b));
    connect_through(proxy, &mut a, &mut b);
    drive([&mut a, &mut b], |[a, b]| a.saw(&Event::Connected(peer(1))) && b.saw(&Event::Connected(peer(0))));
    let start = Instant::now();
    for second in 1..=300 {
        let before = middlebox.passed();
        let now = start + Duration::from_secs(second);
        while middlebox.passed().iter().zip(before).any(|(passed, before)| *passed == before) {
            a.turn(now);
            b.turn(now);
            std::thread::yield_now();
            assert!(start.elapsed() < Duration::from_secs(60), "nothing passed in second {second}");
        }
    }
    assert_eq!(a.tcp.send(peer(1), Tag(1), b"still here"), Ok(Posted::Queued));
    let mut now = start + Duration::from_secs(300);
    while b.messages().is_empty() {
        a.turn(now);
        b.turn(now);
        assert!(start.elapsed() < Duration::from_secs(60), "the message never came");
    }
    middlebox.has_forgotten.store(true, Ordering::Relaxed);
    let lost = |end: &Endpoint| {
        end.pick(|event| if let Event::PeerLost(_, reason) = event { Some(reason.clone()) } else { None })
    };
    while lost(&a).is_empty() || lost(&b).is_empty() {
        now += Duration::from_secs(1);
        a.turn(now);
        b.turn(now);
        assert!(now < start + Duration::from_secs(315), "nobody has noticed");
    }
    assert!(matches!((&lost(&a)[..], &lost(&b)[..]), ([LossReason::Silent(_)], [LossReason::Silent(_)])));
}

#[test]
fn a_peer_is_known_by_its_handshake_not_by_where_it_calls_from() {
    for resets in [0, 1, 6] {
        let (mut a, mut b) = caller_and_called(&config("127.0.0.1"));
        let proxy = proxy(door_of(&b), resets);
        connect_through(proxy, &mut a, &mut b);
        drive([&mut a, &mut b], |[a, b]| {
            a.saw(&Event::Connected(peer(1))) && b.saw(&Event::Connected(peer(0)))
        });
        assert_eq!(a.tcp.send(peer(1), Tag(1), b"round the corner"), Ok(Posted::Queued));
        drive([&mut a, &mut b], |[_, b]| b.messages() == [(1, b"round the corner".to_vec())]);
        let connected = b.pick(|event| matches!(event, Event::Connected(_)).then_some(()));
        assert_eq!(connected.len(), 1, "broken attempts are not seen");
    }
}
