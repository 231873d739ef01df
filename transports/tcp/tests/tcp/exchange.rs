//! Messages and puts between friends.

use crate::support::{Endpoint, drive, pair, pair_on, peer, read};
use gradwire_transport::{
    Event, ImportError, Notice, Posted, Put, Region, RegionKey, RemoteRegion, Tag, Token, Transport,
    TransportError,
};

fn put(token: u64, len: usize, source: Region, target: RemoteRegion) -> Put {
    Put {
        token: Token(token),
        len,
        source,
        source_offset: 0,
        target,
        target_offset: 0,
        notice: Some(Notice::new(3, token as u16)),
    }
}

/// A region of `owner` as the peer `other` reaches it.
fn shared(owner: &mut Endpoint, region: Region, other: &mut Endpoint, name: u32) -> RemoteRegion {
    let key = owner.tcp.export(region).expect("a region");
    other.tcp.import(peer(name), &key).expect("a key")
}

#[test]
fn messages_of_every_size_arrive_in_order() {
    for interface in ["127.0.0.1", "::1"] {
        let (mut a, mut b) = pair_on(interface);
        let most = a.tcp.limits().send;
        let message = |len: usize| (0..len).map(|index| (index * 7 + len) as u8).collect::<Vec<_>>();
        let sizes = [0, 1, 63, 64, 65, 4000, 8191, 8192, 8193, most - 1, most, 5];
        for (tag, len) in sizes.into_iter().enumerate() {
            while a.tcp.send(peer(1), Tag(tag as u32), &message(len)).expect("connected") == Posted::Full {
                drive([&mut a, &mut b], |_| true);
                a.turn(std::time::Instant::now());
                b.turn(std::time::Instant::now());
            }
        }
        drive([&mut a, &mut b], |[_, b]| b.messages().len() == sizes.len());
        let expected: Vec<_> =
            sizes.into_iter().enumerate().map(|(tag, len)| (tag as u32, message(len))).collect();
        assert!(b.messages() == expected, "{interface}");
        let error = a.tcp.send(peer(1), Tag(0), &message(most + 1));
        assert_eq!(error, Err(TransportError::TooLong { len: most + 1, max: most }));
    }
}

#[test]
fn puts_of_every_size_land_where_they_should() {
    let (mut a, mut b) = pair();
    let sizes = [0, 1, 511, 512, 513, 8000, 8192, 70_000, 1 << 20, (3 << 20) + 17];
    for (round, len) in sizes.into_iter().enumerate() {
        let (source, sent) = a.memory(len + 10, round as u8);
        let (target, landed) = b.memory(len + 20, 0x80 + round as u8);
        let before = read(&landed);
        let remote = shared(&mut b, target, &mut a, 1);
        let token = round as u64;
        let posted = Put { source_offset: 3, target_offset: 5, ..put(token, len, source, remote) };
        assert_eq!(a.tcp.put(&posted), Ok(Posted::Queued));
        let notified = Event::Notified(peer(0), Notice::new(3, round as u16));
        drive([&mut a, &mut b], |[a, b]| a.saw(&Event::Done(Token(token))) && b.saw(&notified));
        let expected = [&before[..5], &read(&sent)[3..3 + len], &before[5 + len..]].concat();
        assert!(read(&landed) == expected, "{len} bytes");
    }
}

#[test]
fn both_directions_flow_at_once() {
    let (mut a, mut b) = pair();
    let len = 9 << 20;
    let ((from_a, sent_a), (from_b, sent_b)) = (a.memory(len, 1), b.memory(len, 101));
    let ((to_a, landed_a), (to_b, landed_b)) = (a.memory(len, 0), b.memory(len, 0));
    let at_b = shared(&mut b, to_b, &mut a, 1);
    let at_a = shared(&mut a, to_a, &mut b, 0);
    assert_eq!(a.tcp.put(&put(1, len, from_a, at_b)), Ok(Posted::Queued));
    assert_eq!(b.tcp.put(&put(2, len, from_b, at_a)), Ok(Posted::Queued));
    let notified = |end: &Endpoint| !end.pick(|e| matches!(e, Event::Notified(..)).then_some(())).is_empty();
    drive([&mut a, &mut b], |[a, b]| notified(a) && notified(b));
    assert!(read(&landed_b) == read(&sent_a) && read(&landed_a) == read(&sent_b));
}

#[test]
fn messages_and_puts_keep_their_order() {
    let (mut a, mut b) = pair();
    let (source, _sent) = a.memory(1 << 16, 1);
    let (target, _landed) = b.memory(1 << 16, 0);
    let remote = shared(&mut b, target, &mut a, 1);
    for round in 0..40 {
        let len = [0, 100, 1 << 16][round as usize % 3];
        assert_eq!(a.tcp.put(&put(round, len, source, remote)), Ok(Posted::Queued));
        assert_eq!(a.tcp.send(peer(1), Tag(round as u32), &[round as u8]), Ok(Posted::Queued));
    }
    drive([&mut a, &mut b], |[_, b]| b.happened.len() == 81);
    for (round, pair) in b.happened[1..].chunks(2).enumerate() {
        use crate::support::Happened::{Other, Received};
        let notice = Notice::new(3, round as u16);
        assert_eq!(pair[0], Other(Event::Notified(peer(0), notice)));
        assert_eq!(pair[1], Received(peer(0), round as u32, vec![round as u8]));
    }
    let done = a.pick(|event| if let Event::Done(token) = event { Some(token.0) } else { None });
    assert_eq!(done, (0..40).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_takes_nothing_and_opens_again() {
    let (mut a, mut b) = pair();
    let (source, _sent) = a.memory(1 << 20, 1);
    let (target, _landed) = b.memory(1 << 20, 0);
    let remote = shared(&mut b, target, &mut a, 1);
    let mut taken = 0;
    while a.tcp.put(&put(taken, 1 << 20, source, remote)).expect("in range") == Posted::Queued {
        taken += 1;
    }
    assert_eq!(taken as usize, a.tcp.limits().outstanding);
    let mut messages = 0;
    while a.tcp.send(peer(1), Tag(0), &[0; 1000]).expect("connected") == Posted::Queued {
        messages += 1;
    }
    drive([&mut a, &mut b], |[_, b]| b.messages().len() == messages);
    assert_eq!(a.pick(|e| matches!(e, Event::Done(_)).then_some(())).len(), taken as usize);
    assert_eq!(a.tcp.put(&put(taken, 1, source, remote)), Ok(Posted::Queued));
}

#[test]
fn what_cannot_be_right_is_refused_at_once() {
    let (mut a, mut b) = pair();
    let (source, _sent) = a.memory(100, 1);
    let (target, _landed) = b.memory(50, 0);
    let remote = shared(&mut b, target, &mut a, 1);
    let out = |offset, len, region_len| Err(TransportError::OutOfRange { offset, len, region_len });
    assert_eq!(a.tcp.put(&put(1, 51, source, remote)), out(0, 51, 50));
    let late = Put { target_offset: usize::MAX, ..put(1, 2, source, remote) };
    assert_eq!(a.tcp.put(&late), out(usize::MAX, 2, 50));
    let late = Put { source_offset: 99, ..put(1, 2, source, remote) };
    assert_eq!(a.tcp.put(&late), out(99, 2, 100));
    a.tcp.release(remote);
    assert_eq!(a.tcp.put(&put(1, 1, source, remote)), out(0, 1, 0));
    assert_eq!(a.tcp.send(peer(9), Tag(0), &[]), Err(TransportError::NotConnected));
    let key = RegionKey::from_bytes([0xff; RegionKey::LEN]);
    assert_eq!(a.tcp.import(peer(1), &key), Err(ImportError::BadKey));
    assert_eq!(a.tcp.import(peer(9), &key), Err(ImportError::NotConnected));
}
