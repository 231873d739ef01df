//! Making acquaintance, and parting.

use super::{Backend, Cluster, Seen, pattern, peer};
use gradwire_transport::{
    Activity, Address, Capabilities, ConnectError, ImportError, Linger, LossReason, Peer, Posted, RegionKey,
    Tag, TransportError,
};

/// Whoever comes first waits for the other, and may send nothing meanwhile.
pub fn both_sides_have_to_connect<B: Backend>() {
    let mut cluster = Cluster::<B>::new(2);
    assert_eq!(cluster.transport(0).send(peer(1), Tag(1), b"early"), Err(TransportError::NotConnected));
    cluster.connect(0, 1);
    for _ in 0..100 {
        cluster.turn();
        assert_eq!(cluster.transport(0).send(peer(1), Tag(1), b"early"), Ok(Posted::Full));
    }
    let key = RegionKey::from_bytes([1; RegionKey::LEN]);
    assert_eq!(cluster.try_import(0, peer(1), &key), Err(ImportError::NotConnected));
    assert_eq!((cluster.seen(0), cluster.seen(1)), ([].as_slice(), [].as_slice()));
    cluster.connect(1, 0);
    cluster.until("both are connected", |cluster| {
        cluster.is_connected(0, peer(1)) && cluster.is_connected(1, peer(0))
    });
    cluster.send(0, peer(1), Tag(2), b"in time");
    cluster.until("the message arrives", |cluster| !cluster.messages(1, peer(0)).is_empty());
    assert_eq!(cluster.messages(1, peer(0)), [(Tag(2), b"in time".as_slice())]);
}

/// Addresses are constant, and all different.
pub fn addresses_are_constant_and_distinct<B: Backend>() {
    let mut cluster = Cluster::<B>::new(3);
    let addresses: Vec<Address> = (0..3).map(|index| cluster.transport(index).address()).collect();
    cluster.connect(0, 1);
    cluster.connect(1, 0);
    cluster.until("both are connected", |cluster| {
        cluster.is_connected(0, peer(1)) && cluster.is_connected(1, peer(0))
    });
    for (index, address) in addresses.iter().enumerate() {
        assert_eq!(cluster.transport(index).address(), *address);
        assert!(!addresses[..index].contains(address), "{address:?} twice");
    }
}

/// Eight endpoints, everybody with everybody.
pub fn many_peers_reach_each_other<B: Backend>() {
    const SIZE: usize = 8;
    let mut cluster = Cluster::<B>::connected(SIZE);
    let text = |from: usize, to: usize| pattern((from * SIZE + to) as u64, 100 + from);
    for from in 0..SIZE {
        for to in (0..SIZE).filter(|to| *to != from) {
            cluster.send(from, peer(to), Tag((from * SIZE + to) as u32), &text(from, to));
        }
    }
    cluster.until("all messages arrive", |cluster| {
        (0..SIZE).all(|at| cluster.count(at, |seen| matches!(seen, Seen::Received(..))) == SIZE - 1)
    });
    for to in 0..SIZE {
        for from in (0..SIZE).filter(|from| *from != to) {
            let tag = Tag((from * SIZE + to) as u32);
            assert_eq!(cluster.messages(to, peer(from)), [(tag, text(from, to).as_slice())]);
        }
    }
}

/// Somebody without the job's secret gets nowhere, and disturbs nobody.
pub fn a_stranger_is_refused<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let Some(stranger) = cluster.backend.stranger() else {
        return Cluster::<B>::skip("a_stranger_is_refused", "there is no secret to know");
    };
    let stranger = cluster.adopt(stranger);
    cluster.connect(0, stranger);
    cluster.connect(stranger, 0);
    cluster.until("the stranger gives up", |cluster| cluster.has_lost(stranger, peer(0)));
    cluster.quiet();
    assert!(!cluster.is_connected(0, peer(stranger)), "the stranger got in");
    assert!(!cluster.is_connected(stranger, peer(0)), "the stranger believes it got in");
    let refused = |seen: &Seen| matches!(seen, Seen::PeerLost(_, LossReason::Refused(_)));
    assert!(
        cluster.count(0, refused) + cluster.count(stranger, refused) > 0,
        "somebody should say why: {:?}, {:?}",
        cluster.seen(0),
        cluster.seen(stranger)
    );
    cluster.send(0, peer(1), Tag(1), b"undisturbed");
    cluster.until("a message arrives", |cluster| !cluster.messages(1, peer(0)).is_empty());
}

/// An endpoint cannot be its own peer.
pub fn connecting_to_oneself_is_an_error<B: Backend>() {
    let mut cluster = Cluster::<B>::new(1);
    let address = cluster.transport(0).address();
    assert_eq!(cluster.transport(0).connect(peer(0), &address), Err(ConnectError::SelfConnect));
    cluster.quiet();
    assert_eq!(cluster.seen(0), []);
}

/// Whatever the bytes of an address, the answer is an error and no event.
pub fn nonsense_is_no_address<B: Backend>() {
    let mut cluster = Cluster::<B>::new(2);
    let good = cluster.transport(1).address();
    let mut nonsense: Vec<Vec<u8>> =
        (0..good.as_bytes().len()).map(|len| good.as_bytes()[..len].to_vec()).collect();
    nonsense.push(vec![0xff; 16]);
    nonsense.push(vec![0; 16]);
    nonsense.push(pattern(1, Address::MAX));
    for (generation, bytes) in nonsense.into_iter().enumerate() {
        let address = Address::from_bytes(&bytes).expect("short enough");
        let verdict = cluster.transport(0).connect(Peer::new(7, generation as u32), &address);
        assert!(matches!(verdict, Err(ConnectError::BadAddress(_))), "{address:?}: {verdict:?}");
    }
    cluster.quiet();
    assert_eq!(cluster.seen(0), []);
}

/// A name that was used once names nobody else, not even after the connection is over.
pub fn a_peer_name_is_used_once<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(3);
    let address = cluster.transport(2).address();
    assert_eq!(cluster.transport(0).connect(peer(1), &address), Err(ConnectError::PeerReused));
    cluster.disconnect(0, peer(1), Linger::Drop);
    cluster.quiet();
    assert!(cluster.has_lost(1, peer(0)));
    for (from, to) in [(0, 1), (1, 0)] {
        let address = cluster.transport(to).address();
        assert_eq!(cluster.transport(from).connect(peer(to), &address), Err(ConnectError::PeerReused));
    }
}

/// The next incarnation of a connection works, and has nothing of the last one.
pub fn a_connection_can_be_made_anew<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    for generation in 1..4 {
        let old = Peer::new(1, generation - 1);
        let (left, right) = (Peer::new(0, generation), Peer::new(1, generation));
        cluster.send(0, old, Tag(generation), b"of the old one");
        cluster.disconnect(0, old, Linger::Flush);
        cluster.until("the end is noticed", |cluster| cluster.has_lost(1, Peer::new(0, generation - 1)));
        cluster.connect_as(1, 0, left);
        cluster.connect_as(0, 1, right);
        cluster.until("both are connected", |cluster| {
            cluster.is_connected(1, left) && cluster.is_connected(0, right)
        });
        assert_eq!(cluster.transport(0).send(old, Tag(0), b"late"), Err(TransportError::NotConnected));
        cluster.send(0, right, Tag(100 + generation), b"of the new one");
        cluster.until("the new message arrives", |cluster| !cluster.messages(1, left).is_empty());
        assert_eq!(cluster.messages(1, left), [(Tag(100 + generation), b"of the new one".as_slice())]);
    }
}

/// What was sent before a flushing disconnect arrives, and then the end is reported as one in good order.
pub fn disconnecting_with_flush_delivers_what_was_sent<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(3);
    let len = cluster.limits().send;
    let text = |index: usize| pattern(index as u64, len - index);
    let mut sent = 0;
    // As many as are taken without anybody being driven: all wait in some queue.
    while sent < 10 && cluster.transport(0).send(peer(1), Tag(sent as u32), &text(sent)) == Ok(Posted::Queued)
    {
        sent += 1;
    }
    assert!(sent > 0);
    cluster.disconnect(0, peer(1), Linger::Flush);
    assert_eq!(cluster.transport(0).send(peer(1), Tag(99), b"too late"), Err(TransportError::NotConnected));
    cluster.until("the end is noticed", |cluster| cluster.has_lost(1, peer(0)));
    let messages = cluster.messages(1, peer(0));
    assert_eq!(messages.len(), sent);
    for (index, (tag, bytes)) in messages.into_iter().enumerate() {
        assert_eq!((tag, bytes), (Tag(index as u32), text(index).as_slice()));
    }
    let closed = Seen::PeerLost(peer(0), LossReason::Closed);
    assert_eq!(cluster.seen(1).last(), Some(&closed));
    cluster.quiet();
    assert_eq!(cluster.count(0, |seen| matches!(seen, Seen::PeerLost(..))), 0, "lost whom it left itself");
    cluster.send(0, peer(2), Tag(5), b"to another");
    cluster.until("others are still there", |cluster| !cluster.messages(2, peer(0)).is_empty());
}

/// Operations under way fail when their own side disconnects, and the other side notices the end.
pub fn disconnecting_ends_operations_under_way<B: Backend>() {
    let Some(mut cluster) =
        Cluster::<B>::with("disconnecting_ends_operations_under_way", Capabilities::NONE, 2)
    else {
        return;
    };
    let kind = cluster.kinds()[0];
    let (source, target) = (cluster.memory(0, kind, 1 << 16), cluster.memory(1, kind, 1 << 16));
    let remote = cluster.share(1, &target, 0);
    let posted = super::put::post_until_full(&mut cluster, 0, &source, remote, 1 << 10);
    assert!(posted > 0);
    cluster.disconnect(0, peer(1), Linger::Drop);
    cluster.until("all operations have ended", |cluster| cluster.pending(0) == 0);
    cluster.until("the end is noticed", |cluster| cluster.has_lost(1, peer(0)));
    cluster.quiet();
    assert_eq!(cluster.count(0, |seen| matches!(seen, Seen::PeerLost(..))), 0);
    // The memory is ours again.
    cluster.transport(0).deregister(source.region);
    assert_eq!(cluster.turn(), Activity::Idle);
}
