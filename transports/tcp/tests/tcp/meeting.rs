//! How connections come to be.

use crate::support::{Endpoint, SECRET, caller_and_called, config, drive, introduce, pair, pair_with, peer};
use gradwire_transport::{Address, ConnectError, Event, LossReason, Peer, Posted, Tag, Transport};
use std::time::{Duration, Instant};

fn connected(end: &Endpoint) -> usize {
    end.pick(|event| matches!(event, Event::Connected(_)).then_some(())).len()
}

fn lost(end: &Endpoint) -> Vec<LossReason> {
    end.pick(|event| if let Event::PeerLost(_, reason) = event { Some(reason.clone()) } else { None })
}

#[test]
fn a_pair_meets_with_and_without_a_secret() {
    for secret in [None, Some(SECRET)] {
        for interface in ["127.0.0.1", "::1", "lo,127.0.0.0/8"] {
            let mut config = config(interface);
            config.secret = secret;
            let (a, b) = pair_with(&config);
            assert_eq!((connected(&a), connected(&b)), (1, 1));
        }
    }
}

#[test]
fn all_addresses_of_this_host_serve() {
    let mut config = config("lo");
    config.interface = None;
    pair_with(&config);
}

#[test]
fn either_side_may_be_first() {
    for first in [true, false] {
        let (mut a, mut b) = (Endpoint::new(config("127.0.0.1")), Endpoint::new(config("127.0.0.1")));
        let (early, late) = if first { (&mut a, &mut b) } else { (&mut b, &mut a) };
        early.tcp.connect(peer(1), &late.tcp.address()).expect("an address");
        // Whether the early one calls or is called, it gets as far as it can alone.
        for _ in 0..200 {
            early.turn(Instant::now());
            late.turn(Instant::now());
        }
        assert_eq!((connected(early), connected(late)), (0, 0));
        assert_eq!(early.tcp.send(peer(1), Tag(1), b"too early"), Ok(Posted::Full));
        late.tcp.connect(peer(0), &early.tcp.address()).expect("an address");
        drive([early, late], |[early, late]| connected(early) == 1 && connected(late) == 1);
    }
}

#[test]
fn a_mesh_of_six_meets() {
    let mut ends: Vec<_> = (0..6).map(|_| Endpoint::new(config("127.0.0.1"))).collect();
    let addresses: Vec<_> = ends.iter().map(|end| end.tcp.address()).collect();
    for (here, end) in ends.iter_mut().enumerate() {
        for (there, address) in addresses.iter().enumerate().filter(|(there, _)| *there != here) {
            end.tcp.connect(peer(there as u32), address).expect("an address");
        }
    }
    let [a, b, c, d, e, f] = ends.get_disjoint_mut([0, 1, 2, 3, 4, 5]).expect("six");
    drive([a, b, c, d, e, f], |ends| ends.iter().all(|end| connected(end) == 5));
    for here in 0..6_u32 {
        for there in (0..6).filter(|there| *there != here) {
            let posted = ends[here as usize].tcp.send(peer(there), Tag(here), &[there as u8]);
            assert_eq!(posted, Ok(Posted::Queued));
        }
    }
    let [a, b, c, d, e, f] = ends.get_disjoint_mut([0, 1, 2, 3, 4, 5]).expect("six");
    drive([a, b, c, d, e, f], |ends| ends.iter().all(|end| end.messages().len() == 5));
    for (here, end) in ends.iter().enumerate() {
        let mut messages = end.messages();
        messages.sort();
        let others = (0..6).filter(|there| *there != here as u32);
        assert_eq!(messages, others.map(|there| (there, vec![here as u8])).collect::<Vec<_>>());
    }
}

#[test]
fn a_crowd_meets_at_one_door() {
    const CROWD: u32 = 100;
    let mut hub = Endpoint::new(config("127.0.0.1"));
    let mut others: Vec<_> = (0..CROWD).map(|_| Endpoint::new(config("127.0.0.1"))).collect();
    for (index, other) in others.iter_mut().enumerate() {
        other.tcp.connect(peer(0), &hub.tcp.address()).expect("an address");
        hub.tcp.connect(peer(index as u32 + 1), &other.tcp.address()).expect("an address");
    }
    let start = Instant::now();
    while connected(&hub) < CROWD as usize || others.iter().any(|other| connected(other) == 0) {
        hub.turn(Instant::now());
        for other in &mut others {
            other.turn(Instant::now());
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{} of {CROWD}", connected(&hub));
    }
    for (index, other) in others.iter_mut().enumerate() {
        assert_eq!(other.tcp.send(peer(0), Tag(index as u32), &[index as u8; 5000]), Ok(Posted::Queued));
    }
    while hub.messages().len() < CROWD as usize {
        hub.turn(Instant::now());
        for other in &mut others {
            other.turn(Instant::now());
        }
    }
    let mut messages = hub.messages();
    messages.sort();
    assert!(messages == (0..CROWD).map(|index| (index, vec![index as u8; 5000])).collect::<Vec<_>>());
}

#[test]
fn another_job_is_refused_on_both_sides() {
    let mut other = config("127.0.0.1");
    other.connect_timeout = Duration::from_secs(1);
    let mut ours = other.clone();
    ours.secret = Some([1; 32]);
    for theirs in [Some([2; 32]), None] {
        other.secret = theirs;
        let (mut a, mut b) = (Endpoint::new(ours.clone()), Endpoint::new(other.clone()));
        introduce(&mut a, &mut b);
        drive([&mut a, &mut b], |[a, b]| !lost(a).is_empty() && !lost(b).is_empty());
        for reasons in [lost(&a), lost(&b)] {
            assert!(
                matches!(reasons[..], [LossReason::Refused(_) | LossReason::Unreachable { .. }]),
                "{reasons:?}"
            );
        }
        let refused = [lost(&a), lost(&b)].concat();
        assert!(
            refused
                .iter()
                .any(|reason| matches!(reason, LossReason::Refused(text) if text.contains("secret")))
        );
        assert_eq!((connected(&a), connected(&b)), (0, 0));
    }
}

#[test]
fn mistakes_are_told_at_once() {
    let (mut a, mut b) = pair();
    assert_eq!(a.tcp.connect(peer(5), &a.tcp.address()), Err(ConnectError::SelfConnect));
    let fresh = Endpoint::new(config("127.0.0.1"));
    assert_eq!(a.tcp.connect(peer(1), &fresh.tcp.address()), Err(ConnectError::PeerReused));
    assert!(matches!(a.tcp.connect(peer(5), &b.tcp.address()), Err(ConnectError::BadAddress(_))));
    let nonsense = Address::from_bytes(b"shm:whatever").expect("short");
    assert!(matches!(a.tcp.connect(peer(5), &nonsense), Err(ConnectError::BadAddress(_))));
    let six = Endpoint::new(config("::1"));
    assert!(matches!(a.tcp.connect(peer(5), &six.tcp.address()), Err(ConnectError::Unreachable { .. })));
    a.tcp.disconnect(peer(1), gradwire_transport::Linger::Drop);
    assert_eq!(a.tcp.connect(peer(1), &fresh.tcp.address()), Err(ConnectError::PeerReused), "not even later");
    drive([&mut b], |[b]| lost(b) == [LossReason::Closed]);
}

#[test]
fn the_same_endpoint_may_come_again_under_a_new_name() {
    let (mut a, mut b) = pair();
    a.tcp.disconnect(peer(1), gradwire_transport::Linger::Drop);
    drive([&mut a, &mut b], |[_, b]| !lost(b).is_empty());
    let (again_a, again_b) = (Peer::new(0, 8), Peer::new(1, 8));
    a.tcp.connect(again_b, &b.tcp.address()).expect("an address");
    b.tcp.connect(again_a, &a.tcp.address()).expect("an address");
    drive([&mut a, &mut b], |[a, b]| connected(a) == 2 && connected(b) == 2);
    assert_eq!(a.tcp.send(again_b, Tag(4), b"again"), Ok(Posted::Queued));
    drive([&mut a, &mut b], |[_, b]| b.messages() == [(4, b"again".to_vec())]);
}

#[test]
fn who_is_gone_before_the_first_call_is_lost_long_before_the_deadline() {
    let (mut a, b) = caller_and_called(&config("127.0.0.1"));
    let gone = b.tcp.address();
    drop(b);
    let start = Instant::now();
    a.tcp.connect(peer(1), &gone).expect("an address");
    drive([&mut a], |[a]| !lost(a).is_empty());
    assert!(matches!(lost(&a)[..], [LossReason::Unreachable { .. }]), "{:?}", lost(&a));
    assert!(start.elapsed() >= Duration::from_millis(900), "one refusal is no proof");
}

#[test]
fn who_never_calls_is_unreachable_in_time() {
    let mut config = config("127.0.0.1");
    config.connect_timeout = Duration::from_millis(300);
    let (mut a, mut b) = (Endpoint::new(config.clone()), Endpoint::new(config));
    a.tcp.connect(peer(1), &b.tcp.address()).expect("an address");
    drive([&mut a, &mut b], |[a, _]| !lost(a).is_empty());
    assert!(matches!(lost(&a)[..], [LossReason::Unreachable { .. }]), "{:?}", lost(&a));
}
