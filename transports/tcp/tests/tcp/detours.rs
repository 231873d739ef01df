//! Connections that come from somewhere else than they seem to, through something that is not reliable.

use crate::support::{PORT, caller_and_called, config, door_of, drive, peer};
use gradwire_transport::{Address, Event, Posted, Tag, Transport};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

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
        use std::io::Read;
        let _ = std::io::copy(&mut (&from).take(allowance), &mut &to);
        for end in [from, to] {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
    });
}

#[test]
fn a_peer_is_known_by_its_handshake_not_by_where_it_calls_from() {
    for resets in [0, 1, 6] {
        let (mut a, mut b) = caller_and_called(&config("127.0.0.1"));
        let mut detour = b.tcp.address().as_bytes().to_vec();
        let proxy = proxy(door_of(&b), resets);
        detour[PORT].copy_from_slice(&proxy.port().to_le_bytes());
        detour[47] = 2;
        a.tcp.connect(peer(1), &Address::from_bytes(&detour).expect("short")).expect("an address");
        b.tcp.connect(peer(0), &a.tcp.address()).expect("an address");
        drive([&mut a, &mut b], |[a, b]| {
            a.saw(&Event::Connected(peer(1))) && b.saw(&Event::Connected(peer(0)))
        });
        assert_eq!(a.tcp.send(peer(1), Tag(1), b"round the corner"), Ok(Posted::Queued));
        drive([&mut a, &mut b], |[_, b]| b.messages() == [(1, b"round the corner".to_vec())]);
        let connected = b.pick(|event| matches!(event, Event::Connected(_)).then_some(()));
        assert_eq!(connected.len(), 1, "broken attempts are not seen");
    }
}
