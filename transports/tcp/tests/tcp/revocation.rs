//! Memory that is taken back while bytes are under way.

use crate::support::{Endpoint, drive, pair, peer, read};
use gradwire_transport::{
    Event, FailReason, LossReason, Notice, Posted, Put, Region, RegionKey, RemoteRegion, Tag, Token,
    Transport,
};
use std::time::Instant;

const LEN: usize = 24 << 20;

fn put(token: u64, len: usize, source: Region, target: RemoteRegion) -> Put {
    let notice = Some(Notice(token as u32));
    Put { token: Token(token), len, source, source_offset: 0, target, target_offset: 0, notice }
}

struct Scene {
    a: Endpoint,
    b: Endpoint,
    source: Region,
    target: Region,
    remote: RemoteRegion,
    landed: gradwire_transport::Allocation,
}

fn scene() -> Scene {
    let (mut a, mut b) = pair();
    let (source, _) = a.memory(LEN, 1);
    let (target, landed) = b.memory(LEN, 0);
    let key = b.tcp.export(target).expect("a region");
    let remote = a.tcp.import(peer(1), &key).expect("a key");
    Scene { a, b, source, target, remote, landed }
}

fn barrier(a: &mut Endpoint, b: &mut Endpoint) {
    assert_eq!(a.tcp.send(peer(1), Tag(99), &[]), Ok(Posted::Queued));
    drive([a, b], |[_, b]| b.messages().iter().any(|(tag, _)| *tag == 99));
}

fn notices(end: &Endpoint) -> Vec<u32> {
    end.pick(|event| if let Event::Notified(_, notice) = event { Some(notice.0) } else { None })
}

#[test]
fn a_put_into_a_region_taken_back_is_dropped() {
    let Scene { mut a, mut b, source, target, remote, landed } = scene();
    b.tcp.deregister(target);
    let before = read(&landed);
    for (token, len) in [(1, LEN), (2, 100), (3, 0)] {
        assert_eq!(a.tcp.put(&put(token, len, source, remote)), Ok(Posted::Queued));
    }
    barrier(&mut a, &mut b);
    assert_eq!(notices(&b), []);
    assert!(read(&landed) == before, "not a byte was written");
    assert!([1, 2, 3].into_iter().all(|token| a.saw(&Event::Done(Token(token)))));
}

#[test]
fn a_region_taken_back_half_way_is_written_no_further() {
    let Scene { mut a, mut b, source, target, remote, landed } = scene();
    assert_eq!(a.tcp.put(&put(1, LEN, source, remote)), Ok(Posted::Queued));
    drive([&mut a, &mut b], |_| read(&landed)[..1000] != [0; 1000][..] && read(&landed)[999] != 0);
    b.tcp.deregister(target);
    let before = read(&landed);
    assert_eq!(before[LEN - 1], ((LEN - 1) % 251) as u8, "the end has not been written yet");
    barrier(&mut a, &mut b);
    assert_eq!(notices(&b), []);
    assert!(read(&landed) == before);
}

#[test]
fn a_queued_put_whose_source_is_taken_back_is_not_sent() {
    let Scene { mut a, mut b, source, remote, landed, .. } = scene();
    let (other, _) = a.memory(1000, 77);
    let before = read(&landed);
    assert_eq!(a.tcp.put(&put(1, LEN, source, remote)), Ok(Posted::Queued));
    assert_eq!(a.tcp.put(&put(2, 1000, other, remote)), Ok(Posted::Queued));
    a.tcp.deregister(source);
    barrier(&mut a, &mut b);
    assert!(a.saw(&Event::Failed(Token(1), FailReason::Revoked)));
    assert!(a.saw(&Event::Done(Token(2))));
    assert_eq!(notices(&b), [2]);
    assert_eq!(read(&landed)[0], 77);
    assert!(read(&landed)[1000..] == before[1000..]);
}

#[test]
fn a_put_whose_source_is_taken_back_half_way_is_filled_up_and_not_notified() {
    let Scene { mut a, mut b, source, remote, landed, .. } = scene();
    assert_eq!(a.tcp.put(&put(1, LEN, source, remote)), Ok(Posted::Queued));
    assert_eq!(a.tcp.send(peer(1), Tag(1), b"after"), Ok(Posted::Queued));
    a.turn(Instant::now());
    a.tcp.deregister(source);
    barrier(&mut a, &mut b);
    assert!(a.saw(&Event::Failed(Token(1), FailReason::Revoked)));
    assert!(!a.saw(&Event::Done(Token(1))));
    assert_eq!(notices(&b), []);
    assert_eq!(b.messages()[0], (1, b"after".to_vec()), "the stream goes on behind the filling");
    // The source holds no zero.
    let landed = read(&landed);
    let sent = landed.iter().position(|byte| *byte == 0).expect("it was filled up");
    assert!(sent > 0 && landed[..sent].iter().enumerate().all(|(at, byte)| *byte == 1 + (at % 251) as u8));
    assert!(landed[sent..].iter().all(|byte| *byte == 0), "nothing else got into the filling");
}

/// A key that was never exported, made from one that was.
fn forged(key: &RegionKey, byte: usize) -> RegionKey {
    let mut bytes = *key.as_bytes();
    bytes[byte] ^= 1;
    RegionKey::from_bytes(bytes)
}

#[test]
fn a_forged_key_costs_the_connection() {
    for byte in [0, 15, 20] {
        let Scene { mut a, mut b, source, target, landed, .. } = scene();
        let before = read(&landed);
        let key = forged(&b.tcp.export(target).expect("a region"), byte);
        let remote = a.tcp.import(peer(1), &key).expect("plausible");
        assert_eq!(a.tcp.put(&put(1, 100, source, remote)), Ok(Posted::Queued));
        let lost = |end: &Endpoint| end.pick(|e| matches!(e, Event::PeerLost(..)).then(|| e.clone()));
        drive([&mut a, &mut b], |[a, b]| !lost(a).is_empty() && !lost(b).is_empty());
        assert!(
            matches!(lost(&b)[..], [Event::PeerLost(_, LossReason::Protocol(_))]),
            "byte {byte}: {:?}",
            lost(&b)
        );
        assert!(read(&landed) == before);
    }
}

#[test]
fn a_put_beyond_the_region_costs_the_connection() {
    let Scene { mut a, mut b, source, target, landed, .. } = scene();
    let before = read(&landed);
    // A key that claims a longer region than there is.
    let mut bytes = *b.tcp.export(target).expect("a region").as_bytes();
    bytes[30] = 0x7f;
    let remote = a.tcp.import(peer(1), &RegionKey::from_bytes(bytes)).expect("plausible");
    let beyond = Put { target_offset: LEN - 99, ..put(1, 100, source, remote) };
    assert_eq!(a.tcp.put(&beyond), Ok(Posted::Queued));
    let lost = |end: &Endpoint| end.pick(|e| matches!(e, Event::PeerLost(..)).then(|| e.clone()));
    drive([&mut a, &mut b], |[_, b]| !lost(b).is_empty());
    assert!(matches!(lost(&b)[..], [Event::PeerLost(_, LossReason::Protocol(_))]), "{:?}", lost(&b));
    assert!(read(&landed) == before);
}
