//! Who is gone, and how that is noticed. The clock is the test's.

use crate::support::{Endpoint, config, drive, pair, pair_with, peer};
use gradwire_transport::{
    Event, FailReason, Linger, LossReason, Notice, Posted, Put, Tag, Token, Transport, TransportError,
};
use std::time::{Duration, Instant};

fn lost(end: &Endpoint) -> Vec<LossReason> {
    end.pick(|event| if let Event::PeerLost(_, reason) = event { Some(reason.clone()) } else { None })
}

#[test]
fn heartbeats_keep_an_idle_pair_together() {
    let (mut a, mut b) = pair();
    let start = Instant::now();
    for second in 1..100 {
        let now = start + Duration::from_secs(second);
        // Twice, so that what one says in its second turn is heard in the same second.
        for _ in 0..2 {
            a.turn(now);
            b.turn(now);
        }
    }
    assert_eq!((lost(&a), lost(&b)), (vec![], vec![]));
}

#[test]
fn a_peer_that_says_nothing_is_silent() {
    let (mut a, _b) = pair();
    let start = Instant::now();
    let mut now = start;
    while lost(&a).is_empty() {
        now = a.tcp.deadline().expect("heartbeats are due").max(now + Duration::from_millis(1));
        a.turn(now);
        assert!(now < start + Duration::from_secs(30));
    }
    assert!(now >= start + Duration::from_secs(9), "after {:?}", now - start);
    assert!(matches!(lost(&a)[..], [LossReason::Silent(_)]));
}

#[test]
fn who_was_asleep_does_not_accuse_others() {
    let (mut a, mut b) = pair();
    let hours = Instant::now() + Duration::from_secs(7200);
    a.turn(hours);
    assert_eq!(lost(&a), []);
    for _ in 0..3 {
        b.turn(hours);
        a.turn(hours);
    }
    assert_eq!((lost(&a), lost(&b)), (vec![], vec![]));
}

#[test]
fn the_end_of_a_process_is_seen_at_once() {
    let (mut a, b) = pair();
    let (source, _sent) = a.memory(64 << 20, 1);
    let mut b = b;
    let (target, _landed) = b.memory(64 << 20, 1);
    let key = b.tcp.export(target).expect("a region");
    let remote = a.tcp.import(peer(1), &key).expect("a key");
    for token in 0..3 {
        let (len, notice) = (64 << 20, Some(Notice(1)));
        let put = Put {
            token: Token(token),
            len,
            source,
            source_offset: 0,
            target: remote,
            target_offset: 0,
            notice,
        };
        assert_eq!(a.tcp.put(&put), Ok(Posted::Queued));
    }
    a.turn(Instant::now());
    drop(b);
    drive([&mut a], |[a]| !lost(a).is_empty());
    let failed =
        a.pick(|e| if let Event::Failed(token, reason) = e { Some((token.0, reason.clone())) } else { None });
    assert_eq!(failed, [0, 1, 2].map(|token| (token, FailReason::PeerLost)));
    assert_eq!(lost(&a).len(), 1);
    assert!(matches!(a.happened.last(), Some(crate::support::Happened::Other(Event::PeerLost(..)))));
    assert_eq!(a.tcp.send(peer(1), Tag(0), b"hello?"), Err(TransportError::PeerLost));
    for _ in 0..10 {
        a.turn(Instant::now());
    }
    assert_eq!(lost(&a).len(), 1, "told once");
}

#[test]
fn what_was_queued_leaves_before_the_farewell() {
    let (mut a, mut b) = pair();
    let report = vec![0xab; 60_000];
    for tag in 0..4 {
        assert_eq!(a.tcp.send(peer(1), Tag(tag), &report), Ok(Posted::Queued));
    }
    // What b says meanwhile must not turn the farewell into a reset.
    assert_eq!(b.tcp.send(peer(0), Tag(7), &report), Ok(Posted::Queued));
    b.turn(Instant::now());
    a.tcp.disconnect(peer(1), Linger::Flush);
    assert_eq!(a.tcp.send(peer(1), Tag(9), b"later"), Err(TransportError::NotConnected));
    drive([&mut a, &mut b], |[_, b]| !lost(b).is_empty());
    assert_eq!(lost(&b), [LossReason::Closed]);
    assert_eq!(b.messages(), (0..4).map(|tag| (tag, report.clone())).collect::<Vec<_>>());
    assert_eq!(lost(&a), [], "we left, nobody was lost");
}

#[test]
fn a_dropped_connection_fails_what_was_under_way() {
    let (mut a, mut b) = pair();
    let (source, _sent) = a.memory(1000, 1);
    let (target, _landed) = b.memory(1000, 1);
    let key = b.tcp.export(target).expect("a region");
    let remote = a.tcp.import(peer(1), &key).expect("a key");
    let put = Put {
        token: Token(1),
        len: 1000,
        source,
        source_offset: 0,
        target: remote,
        target_offset: 0,
        notice: None,
    };
    assert_eq!(a.tcp.put(&put), Ok(Posted::Queued));
    a.tcp.disconnect(peer(1), Linger::Drop);
    assert_eq!(a.tcp.put(&put), Err(TransportError::NotConnected));
    drive([&mut a, &mut b], |[_, b]| !lost(b).is_empty());
    assert!(a.saw(&Event::Failed(Token(1), FailReason::PeerLost)));
    assert_eq!((lost(&a), lost(&b)), (vec![], vec![LossReason::Closed]));
}

#[test]
fn sleeping_on_the_descriptor_is_enough() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (mut a, mut b) = pair_with(&config("127.0.0.1"));
    let sleep = |end: &mut Endpoint| {
        while !end.tcp.prepare_sleep() {
            end.turn(Instant::now());
        }
        let fd = end.tcp.readiness().expect("a descriptor");
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(poll(&mut fds, Some(&patience)), Ok(1), "nothing became ready");
    };
    for round in 0..50_u8 {
        assert_eq!(a.tcp.send(peer(1), Tag(0), &[round; 5000]), Ok(Posted::Queued));
        // Not written yet: room to write is what there is to wake up for.
        sleep(&mut a);
        a.turn(Instant::now());
        sleep(&mut b);
        b.turn(Instant::now());
        assert_eq!(b.messages().len(), usize::from(round) + 1);
    }
}
