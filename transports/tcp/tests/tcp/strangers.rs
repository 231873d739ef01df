//! Callers who do not belong, and listeners who are not who we want.

use crate::support::{Endpoint, caller_and_called, config, door_of, drive, introduce, pair, peer};
use gradwire_transport::{Event, LossReason, Posted, Tag, Transport};
use gradwire_transport_tcp::{Tcp, TcpConfig};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn lost(end: &Endpoint) -> Vec<LossReason> {
    end.pick(|event| if let Event::PeerLost(_, reason) = event { Some(reason.clone()) } else { None })
}

/// How many connections somebody in this process has accepted at a door and not closed.
fn held_at(door: SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("proc");
    let local = format!(":{:04X}", door.port());
    let held = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        // Local address, state (1: established, 8: the other side has closed), inode (0: not accepted yet).
        let is_held = fields[1].ends_with(&local) && matches!(fields[3], "01" | "08") && fields[9] != "0";
        is_held.then(|| fields[9].to_owned())
    };
    // While others come and go, a line may be read twice.
    table.lines().skip(1).filter_map(held).collect::<HashSet<_>>().len()
}

/// An endpoint that dials, and what `occupy` puts at the address it dials, where the other endpoint was.
fn impostor<T>(config: &TcpConfig, occupy: impl Fn(SocketAddr) -> Option<T>) -> (Endpoint, T) {
    loop {
        let (mut a, b) = caller_and_called(config);
        let (address, door) = (b.tcp.address(), door_of(&b));
        drop(b);
        // Somebody else may have taken the port.
        if let Some(occupant) = occupy(door) {
            a.tcp.connect(peer(1), &address).expect("an address");
            return (a, occupant);
        }
    }
}

fn hurried() -> TcpConfig {
    let mut config = config("127.0.0.1");
    config.connect_timeout = Duration::from_millis(700);
    config.handshake_timeout = Duration::from_millis(200);
    config
}

/// Drives an endpoint against a listener that answers each call with `answer`.
fn meet(config: &TcpConfig, answer: impl Fn(&mut TcpStream)) -> (LossReason, Duration) {
    let (mut a, listener) = impostor(config, |door| TcpListener::bind(door).ok());
    listener.set_nonblocking(true).expect("non-blocking");
    let start = Instant::now();
    let mut calls = Vec::new();
    while lost(&a).is_empty() {
        a.turn(Instant::now());
        if let Ok((mut call, _)) = listener.accept() {
            answer(&mut call);
            calls.push(call);
        }
        assert!(start.elapsed() < Duration::from_secs(20), "no verdict");
    }
    (lost(&a).remove(0), start.elapsed())
}

#[test]
fn a_web_server_is_refused() {
    let (reason, _) =
        meet(&config("127.0.0.1"), |call| call.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("room"));
    assert!(matches!(reason, LossReason::Refused(text) if text.contains("another protocol")), "{reason:?}");
}

#[test]
fn random_bytes_are_refused() {
    let (reason, _) = meet(&config("127.0.0.1"), |call| call.write_all(&[0x9e; 4096]).expect("room"));
    assert!(matches!(reason, LossReason::Refused(text) if text.contains("another protocol")), "{reason:?}");
}

#[test]
fn silence_ends_in_time() {
    let (reason, took) = meet(&hurried(), |_| {});
    assert!(matches!(reason, LossReason::Unreachable { .. }), "{reason:?}");
    assert!(took >= Duration::from_millis(600), "it gave up before its time: {took:?}");
}

#[test]
fn a_listener_that_hangs_up_is_unreachable() {
    let (reason, _) = meet(&hurried(), |call| call.shutdown(std::net::Shutdown::Both).unwrap_or_default());
    assert!(matches!(reason, LossReason::Unreachable { .. }), "{reason:?}");
}

#[test]
fn another_endpoint_at_the_address_is_refused() {
    let config = config("127.0.0.1");
    let (mut a, other) = impostor(&config, |door| {
        let mut config = config.clone();
        config.ports = Some(door.port()..=door.port());
        Tcp::new(config).ok()
    });
    let mut other = Endpoint::over(other);
    drive([&mut a, &mut other], |[a, _]| !lost(a).is_empty());
    assert!(
        matches!(lost(&a)[..], [LossReason::Refused(text)] if text.contains("another endpoint")),
        "{:?}",
        lost(&a)
    );
}

#[test]
fn strangers_do_not_keep_friends_out() {
    let (mut a, mut b) = (Endpoint::new(config("127.0.0.1")), Endpoint::new(config("127.0.0.1")));
    let hello = *b"gradwire\x01\x01\x01\0\0\0\0\0";
    let mut strangers = Vec::new();
    for door in [door_of(&a), door_of(&b)] {
        for index in 0..60 {
            let mut stranger = TcpStream::connect(door).expect("a listener");
            match index % 3 {
                0 => {}
                1 => stranger.write_all(&hello[..1 + index % 9]).expect("room"),
                _ => stranger.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").expect("room"),
            }
            strangers.push(stranger);
        }
    }
    introduce(&mut a, &mut b);
    let mut turns = 0;
    // Time stands still: nobody who waits for a stranger's deadline gets anywhere.
    let start = Instant::now();
    while !a.saw(&Event::Connected(peer(1))) || !b.saw(&Event::Connected(peer(0))) {
        turns += 1;
        if let Some(dripping) = strangers.get_mut(turns % 120) {
            let _ = dripping.write(b"g");
        }
        a.turn(start);
        b.turn(start);
        assert!(start.elapsed() < Duration::from_secs(20), "friends wait for strangers");
    }
}

#[test]
fn more_strangers_than_places_do_not_keep_friends_out() {
    let mut narrow = config("127.0.0.1");
    narrow.half_open = 8;
    let (mut a, mut b) = (Endpoint::new(narrow.clone()), Endpoint::new(narrow));
    let doors = [door_of(&a), door_of(&b)];
    let strangers: Vec<_> =
        (0..100).map(|index| TcpStream::connect(doors[index % 2]).expect("a listener")).collect();
    introduce(&mut a, &mut b);
    drive([&mut a, &mut b], |[a, b]| a.saw(&Event::Connected(peer(1))) && b.saw(&Event::Connected(peer(0))));
    let held = doors.map(held_at);
    assert!(held.iter().all(|held| *held <= 8 + 1), "{held:?} connections of strangers are kept");
    drop(strangers);
}

#[test]
fn a_scan_during_a_job_disturbs_nothing() {
    let (mut a, mut b) = pair();
    let calls = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    let valid = hello_of(&b);
    let door = door_of(&a);
    for index in 0..calls {
        let mut stranger = TcpStream::connect(door).expect("a listener");
        let _ = stranger.write(&valid[..index % (valid.len() + 1)]);
        if index % 2 == 0 {
            // A reset instead of an end: bytes of the other side are left unread, or the linger time is 0.
            let _ = rustix::net::sockopt::set_socket_linger(&stranger, Some(Duration::ZERO));
        }
        drop(stranger);
        if index % 50 == 0 {
            assert_eq!(a.tcp.send(peer(1), Tag(index as u32), b"job"), Ok(Posted::Queued));
        }
        a.turn(Instant::now());
        b.turn(Instant::now());
    }
    drive([&mut a, &mut b], |[_, b]| b.messages().len() == calls / 50);
    drive([&mut a, &mut b], |_| held_at(door) <= 1);
    assert_eq!((lost(&a), lost(&b)), (vec![], vec![]));
}

/// The opening message that `end` would send to some endpoint.
fn hello_of(end: &Endpoint) -> Vec<u8> {
    let address = end.tcp.address();
    [b"gradwire\x01\x01\x01\0\0\0\0\0", &address.as_bytes()[8..24], &[3; 16], &[4; 32]].concat()
}

#[test]
fn a_hello_for_somebody_else_is_told_so() {
    let mut a = Endpoint::new(config("127.0.0.1"));
    let b = Endpoint::new(config("127.0.0.1"));
    let mut stranger = TcpStream::connect(door_of(&a)).expect("a listener");
    stranger.write_all(&hello_of(&b)).expect("room");
    stranger.set_nonblocking(true).expect("non-blocking");
    let mut answer = Vec::new();
    let start = Instant::now();
    while stranger.read_to_end(&mut answer).is_err() {
        a.turn(Instant::now());
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(answer.len(), 16, "a rejection, and nothing of ours in it: {answer:?}");
}
