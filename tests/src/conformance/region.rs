//! Names, keys and memory.

use super::put::{assert_same, plain};
use super::{Backend, Cluster, MemoryKind, Seen, TestMemory, pattern, peer};
use gradwire_transport::{
    Capabilities, ImportError, LossReason, Notice, Posted, Put, Region, RegionKey, Tag, TransportError,
};
use std::collections::HashSet;

/// No name of a region is used twice, and an old one opens nothing.
pub fn region_names_are_never_reused<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let mut names = HashSet::new();
    let mut keys = HashSet::new();
    let live = cluster.kinds()[0];
    let (other, target) = (cluster.memory(0, live, 64), cluster.memory(1, live, 64));
    let remote = cluster.share(1, &target, 0);
    for round in 0..200_usize {
        let kinds = MemoryKind::of(cluster.transport(0));
        let kind = kinds[round % kinds.len()];
        let memory = cluster.memory(0, kind, 64);
        let key = cluster.transport(0).export(memory.region);
        assert_eq!(cluster.transport(0).export(memory.region), key, "a region has one key");
        assert_eq!(key.is_some(), cluster.kinds().contains(&kind), "{kind:?}");
        assert!(names.insert(memory.region), "{:?} twice", memory.region);
        assert!(key.is_none_or(|key| keys.insert(key)), "{key:?} twice");
        cluster.transport(0).deregister(memory.region);
        cluster.transport(0).deregister(memory.region);
        assert_eq!(cluster.transport(0).export(memory.region), None);
        let put = plain(cluster.token(), 1, (memory.region, 0), (remote, 0));
        let gone = TransportError::OutOfRange { offset: 0, len: 1, region_len: 0 };
        assert_eq!(cluster.try_put(0, &put), Err(gone));
    }
    assert!(!names.contains(&other.region));
    assert_eq!(cluster.transport(0).export(Region::new(u32::MAX, 0)), None);
}

/// No name of a remote region is used twice; one that was given back opens nothing.
pub fn remote_names_are_never_reused<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let kind = cluster.kinds()[0];
    let (source, target) = (cluster.memory(0, kind, 64), cluster.memory(1, kind, 64));
    for _ in 0..50 {
        // `import` of the cluster checks that the name is new.
        let remote = cluster.share(1, &target, 0);
        cluster.transport(0).release(remote);
        cluster.transport(0).release(remote);
        let put = plain(cluster.token(), 1, (source.region, 0), (remote, 0));
        let gone = TransportError::OutOfRange { offset: 0, len: 1, region_len: 0 };
        assert_eq!(cluster.try_put(0, &put), Err(gone));
    }
}

/// Allocated memory is zeroed, keeps its contents when it is deregistered, and outlives its transport.
pub fn allocations_belong_to_their_holder<B: Backend>() {
    let test = "allocations_belong_to_their_holder";
    let Some(mut cluster) = Cluster::<B>::with(test, Capabilities::ALLOCATE, 2) else { return };
    let sizes = [0, 1, 4095, 4096, 4097, 1_000_000];
    // Twice: the second time memory that was used and freed may come again.
    for round in 0..2 {
        for (index, len) in sizes.into_iter().enumerate() {
            let memory = cluster.memory(0, MemoryKind::Allocated, len);
            assert!(memory.read_all() == vec![0; len], "{len} bytes are not zeroed");
            let bytes = pattern((round * 100 + index) as u64, len);
            memory.write(0, &bytes);
            cluster.transport(0).deregister(memory.region);
            assert_same(&memory.read_all(), &bytes, "after deregister");
        }
    }
    let memory = cluster.memory(1, MemoryKind::Allocated, 10_000);
    memory.write(0, &pattern(5, 10_000));
    cluster.kill(1);
    assert_same(&memory.read_all(), &pattern(5, 10_000), "after the end of the transport");
    memory.write(0, &pattern(6, 10_000));
    assert_same(&memory.read_all(), &pattern(6, 10_000), "after the end of the transport");
}

/// A key is good for its own region and its own peer only; each byte of it counts.
pub fn a_changed_key_opens_nothing<B: Backend>() {
    for byte in 0..RegionKey::LEN {
        let mut cluster = Cluster::<B>::connected(3);
        let kind = cluster.kinds()[0];
        let (source, target) = (cluster.memory(0, kind, 4096), cluster.memory(1, kind, 4096));
        source.write(0, &pattern(1, 4096));
        target.write(0, &pattern(2, 4096));
        let key = cluster.transport(1).export(target.region).expect("a key");
        let mut bytes = *key.as_bytes();
        bytes[byte] ^= 0x10;
        let forged = RegionKey::from_bytes(bytes);
        let posted = try_to_put(&mut cluster, &source, &forged);
        cluster.quiet();
        let has_written = target.read(0, 1) != pattern(2, 1);
        // A length that is there for the origin's own checks may lie: the key still opens what it did before.
        let lies_about_length_only =
            B::stretch(&key, 1).is_some() && B::stretch(&key, 1) == B::stretch(&forged, 1);
        assert!(!has_written || (posted && lies_about_length_only), "byte {byte}: a forged key wrote");
        assert_eq!(target.read(1, 4095), pattern(2, 4096)[1..], "byte {byte}: a forged key wrote");
        let is_notified = cluster.is_notified(1, peer(0), Notice::new(3, 3));
        assert_eq!(is_notified, has_written, "byte {byte}: a forged key raised a notice");
        assert!(
            !(has_written && cluster.has_lost(1, peer(0))),
            "byte {byte}: wrote first, and was punished then"
        );
        assert!(!cluster.has_lost(1, peer(2)) && !cluster.has_lost(2, peer(1)), "somebody else was punished");
    }
}

/// Where the target checks: a range outside the region costs the peer its connection, and writes nothing.
pub fn a_put_outside_costs_the_connection<B: Backend>() {
    let test = "a_put_outside_costs_the_connection";
    for (offset, len) in [(4096_usize, 1_usize), (4095, 2), (1 << 40, 1)] {
        let mut cluster = Cluster::<B>::connected(3);
        let kind = cluster.kinds()[0];
        let (source, target) = (cluster.memory(0, kind, 64), cluster.memory(1, kind, 4096));
        target.write(0, &pattern(2, 4096));
        let key = cluster.transport(1).export(target.region).expect("a key");
        let Some(stretched) = B::stretch(&key, 1 << 50) else {
            return Cluster::<B>::skip(test, "its keys cannot be stretched");
        };
        let remote = cluster.import(0, peer(1), &stretched);
        let put = Put {
            notice: Some(Notice::new(3, 3)),
            ..plain(cluster.token(), len, (source.region, 0), (remote, offset))
        };
        cluster.put(0, &put);
        cluster.until("both sides lose each other", |cluster| {
            cluster.has_lost(1, peer(0)) && cluster.has_lost(0, peer(1))
        });
        let protocol = |seen: &Seen| matches!(seen, Seen::PeerLost(_, LossReason::Protocol(_)));
        assert_eq!(cluster.count(1, protocol), 1, "{:?}", cluster.seen(1));
        assert_eq!(cluster.count(1, |seen| matches!(seen, Seen::Notified(..))), 0);
        assert!(target.read_all() == pattern(2, 4096), "it wrote");
        cluster.send(1, peer(2), Tag(1), b"all is well");
        cluster.until("others are still there", |cluster| !cluster.messages(2, peer(1)).is_empty());
    }
}

/// A key that was not exported is an offence as well.
pub fn a_forged_key_costs_the_connection<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let kind = cluster.kinds()[0];
    let (source, target) = (cluster.memory(0, kind, 64), cluster.memory(1, kind, 64));
    let key = cluster.transport(1).export(target.region).expect("a key");
    if B::stretch(&key, 64).is_none() {
        return Cluster::<B>::skip("a_forged_key_costs_the_connection", "its target does not check");
    }
    // All keys that software checks begin with what only the exporter can know.
    let mut bytes = *key.as_bytes();
    bytes[0] ^= 1;
    assert!(try_to_put(&mut cluster, &source, &RegionKey::from_bytes(bytes)));
    cluster.until("both sides lose each other", |cluster| {
        cluster.has_lost(1, peer(0)) && cluster.has_lost(0, peer(1))
    });
    assert_eq!(cluster.pending(0), 0);
    assert_eq!(target.read_all(), vec![0; 64]);
}

/// A peer that is not connected has no regions.
pub fn only_connected_peers_have_keys<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let kind = cluster.kinds()[0];
    let target = cluster.memory(1, kind, 64);
    let key = cluster.transport(1).export(target.region).expect("a key");
    assert_eq!(cluster.try_import(0, peer(5), &key), Err(ImportError::NotConnected));
    assert!(matches!(
        cluster.try_import(0, peer(1), &RegionKey::from_bytes([0xff; RegionKey::LEN])),
        Err(ImportError::BadKey)
    ));
    cluster.kill(1);
    cluster.until("the loss is noticed", |cluster| cluster.has_lost(0, peer(1)));
    assert_eq!(cluster.try_import(0, peer(1), &key), Err(ImportError::NotConnected));
}

/// Tries to put one byte with a forged key and waits for the end of it. `false`: the key was refused at once.
fn try_to_put<B: Backend>(cluster: &mut Cluster<B>, source: &TestMemory, key: &RegionKey) -> bool {
    let remote = match cluster.try_import(0, peer(1), key) {
        Ok(remote) => remote,
        Err(ImportError::BadKey | ImportError::NotYet) => return false,
        Err(error) => panic!("a forged key: {error}"),
    };
    let put =
        Put { notice: Some(Notice::new(3, 3)), ..plain(cluster.token(), 1, (source.region, 0), (remote, 0)) };
    match cluster.try_put(0, &put) {
        Ok(posted) => assert_eq!(posted, Posted::Queued),
        Err(TransportError::OutOfRange { .. }) => return false,
        Err(error) => panic!("a forged key: {error}"),
    }
    cluster.until("the put has ended", |cluster| cluster.pending(0) == 0);
    true
}
