//! Peers that die. That each operation ends once, that its end comes before the loss is reported, that the loss is
//! reported once and that nothing comes after it: the cluster checks all that at every event of every test.

use super::put::{plain, post_until_full};
use super::{Backend, Cluster, Seen, pattern, peer};
use gradwire_transport::{Linger, LossReason, Posted, Put, RegionKey, Tag, TransportError};

/// Every operation of a peer that dies ends, whatever had become of it, and so does the connection.
pub fn a_dead_peer_ends_its_operations<B: Backend>() {
    for turns in [0, 1, 3, 10] {
        let mut cluster = Cluster::<B>::connected(3);
        let kind = cluster.kinds()[0];
        let len = cluster.limits().put.min(256 << 10);
        let source = cluster.memory(0, kind, 16 * len);
        source.write(0, &pattern(1, 16 * len));
        let (doomed, other) = (cluster.memory(1, kind, 16 * len), cluster.memory(2, kind, 16 * len));
        let (to_doomed, to_other) = (cluster.share(1, &doomed, 0), cluster.share(2, &other, 0));
        let posted = post_until_full(&mut cluster, 0, &source, to_doomed, len);
        assert!(posted > 0);
        let _ = cluster.transport(0).send(peer(1), Tag(1), b"never mind");
        cluster.turns(turns);
        cluster.kill(1);
        cluster.until("both survivors notice", |cluster| {
            cluster.has_lost(0, peer(1)) && cluster.has_lost(2, peer(1))
        });
        assert_eq!(cluster.pending(0), 0);
        let ends = |seen: &Seen| matches!(seen, Seen::Done(_) | Seen::Failed(..));
        assert_eq!(cluster.count(0, ends), posted);

        // From now on it is an error to ask for anything.
        let put = plain(cluster.token(), 1, (source.region, 0), (to_doomed, 0));
        let verdict = cluster.try_put(0, &put);
        let is_over = matches!(verdict, Err(TransportError::PeerLost | TransportError::OutOfRange { .. }));
        assert!(is_over, "a put to a dead peer: {verdict:?}");
        assert_eq!(cluster.transport(0).send(peer(1), Tag(1), b"?"), Err(TransportError::PeerLost));
        let key = RegionKey::from_bytes([1; RegionKey::LEN]);
        assert!(cluster.try_import(0, peer(1), &key).is_err());
        cluster.transport(0).release(to_doomed);

        // The survivors are as before.
        let put = Put { token: cluster.token(), target: to_other, len, ..put };
        cluster.put(0, &put);
        cluster.send(0, peer(2), Tag(2), b"still here");
        cluster.until("a message and a put arrive", |cluster| {
            !cluster.messages(2, peer(0)).is_empty() && cluster.pending(0) == 0
        });
        cluster.quiet();
        let losses = |seen: &Seen| matches!(seen, Seen::PeerLost(..));
        assert_eq!((cluster.count(0, losses), cluster.count(2, losses)), (1, 1));
    }
}

/// A peer that dies while messages to it wait for room, or while nobody says anything, is lost all the same.
pub fn a_dead_peer_is_noticed_in_silence<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(3);
    cluster.quiet();
    cluster.kill(2);
    cluster.until("both survivors notice", |cluster| {
        cluster.has_lost(0, peer(2)) && cluster.has_lost(1, peer(2))
    });
    let mut cluster = Cluster::<B>::connected(2);
    cluster.drive(1, false);
    let bytes = vec![1; cluster.limits().send];
    for _ in 0..1000 {
        if cluster.transport(0).send(peer(1), Tag(1), &bytes).expect("send") == Posted::Full {
            cluster.turn();
        }
    }
    cluster.kill(1);
    cluster.until("the survivor notices", |cluster| cluster.has_lost(0, peer(1)));
}

/// A peer that dies before it has connected is lost, not waited for.
pub fn a_peer_that_dies_before_connecting_is_lost<B: Backend>() {
    let mut cluster = Cluster::<B>::new(2);
    cluster.connect(0, 1);
    cluster.connect(1, 0);
    cluster.kill(1);
    cluster.until("the survivor notices", |cluster| cluster.has_lost(0, peer(1)));
    assert!(!cluster.is_connected(0, peer(1)));
    assert_eq!(cluster.transport(0).send(peer(1), Tag(1), b"?"), Err(TransportError::PeerLost));
}

/// The report of an abort comes before the end of the connection that carried it, also through a busy queue.
pub fn last_words_are_heard<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let kind = cluster.kinds()[0];
    let len = cluster.limits().put.min(64 << 10);
    let (source, target) = (cluster.memory(0, kind, 16 * len), cluster.memory(1, kind, 16 * len));
    let remote = cluster.share(1, &target, 0);
    // Room for one message is left.
    let slots = cluster.limits().outstanding.saturating_sub(1).min(8);
    for slot in 0..slots {
        let put = plain(cluster.token(), len, (source.region, slot * len), (remote, slot * len));
        let _ = cluster.try_put(0, &put).expect("put");
    }
    let posted = cluster.transport(0).send(peer(1), Tag(77), b"rank 0 gives up").expect("send");
    cluster.disconnect(0, peer(1), Linger::Flush);
    cluster.until("the end is noticed", |cluster| cluster.has_lost(1, peer(0)));
    if posted == Posted::Queued {
        assert_eq!(cluster.messages(1, peer(0)), [(Tag(77), b"rank 0 gives up".as_slice())]);
        assert_eq!(cluster.seen(1).last(), Some(&Seen::PeerLost(peer(0), LossReason::Closed)));
    }
    cluster.until("all operations have ended", |cluster| cluster.pending(0) == 0);
}

/// Whatever a peer had said before its end is heard before its loss, also where its end breaks our own messages to it off
/// and it leaves some unread.
pub fn what_was_said_before_the_end_is_heard<B: Backend>() {
    if let Some(why) = B::keeps_output() {
        return Cluster::<B>::skip("what_was_said_before_the_end_is_heard", &why);
    }
    for is_sudden in [true, false] {
        let mut cluster = Cluster::<B>::connected(2);
        cluster.drive(1, false);
        let bytes = vec![1; cluster.limits().send];
        let mut refused = 0;
        for _ in 0..1000 {
            match cluster.transport(0).send(peer(1), Tag(1), &bytes).expect("send") {
                Posted::Queued => refused = 0,
                Posted::Full if refused < 3 => refused += 1,
                Posted::Full => break,
            }
            cluster.turn();
        }
        // It speaks while nobody listens, and ends as soon as its words have left.
        cluster.drive(0, false);
        cluster.drive(1, true);
        let said = |index| pattern(u64::from(index), 100);
        let mut count = 0;
        while count < 200
            && cluster.transport(1).send(peer(0), Tag(count), &said(count)).expect("send") == Posted::Queued
        {
            count += 1;
        }
        assert!(count > 0);
        cluster.until("its words leave", |cluster| !cluster.transport(1).has_output());
        if is_sudden {
            cluster.kill(1);
        } else {
            cluster.disconnect(1, peer(0), Linger::Flush);
        }
        cluster.drive(0, true);
        cluster.until("the end is noticed", |cluster| cluster.has_lost(0, peer(1)));
        let expected: Vec<_> = (0..count).map(|index| (Tag(index), said(index))).collect();
        let heard = cluster.messages(0, peer(1));
        assert!(
            heard.iter().copied().eq(expected.iter().map(|(tag, bytes)| (*tag, bytes.as_slice()))),
            "{heard:?}"
        );
        assert!(matches!(cluster.seen(0).last(), Some(Seen::PeerLost(..))));
    }
}
