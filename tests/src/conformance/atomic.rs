//! Remote atomics: nothing is lost when several add at a time.

use super::{Backend, Cluster, Seen};
use gradwire_transport::{Atomic, AtomicKind, AtomicOperation, Capabilities, Token, TransportError};

/// Three endpoints add to one number of a fourth; all old values differ and the sum is right.
pub fn additions_are_atomic<B: Backend>() {
    const ADDERS: usize = 3;
    const EACH: u64 = 50;
    let Some(mut cluster) = Cluster::<B>::with("additions_are_atomic", Capabilities::ATOMIC, ADDERS + 1)
    else {
        return;
    };
    let kind = cluster.kinds()[0];
    let target = cluster.memory(ADDERS, kind, 64);
    target.write(0, &[0x5a; 64]);
    target.write(8, &1000_u64.to_le_bytes());
    let mut adders = Vec::new();
    for adder in 0..ADDERS {
        let fetched = cluster.memory(adder, kind, 8 * EACH as usize);
        adders.push((fetched, cluster.share(ADDERS, &target, adder)));
    }
    for step in 0..EACH {
        for (adder, (fetched, remote)) in adders.iter().enumerate() {
            let atomic = Atomic {
                token: cluster.token(),
                operation: AtomicOperation::FetchAdd,
                kind: AtomicKind::U64,
                operand: 7,
                compare: 0,
                target: *remote,
                target_offset: 8,
                fetched: fetched.region,
                fetched_offset: 8 * step as usize,
            };
            cluster.when_room("an atomic is taken", |cluster| cluster.try_atomic(adder, &atomic));
        }
    }
    cluster.until("all atomics are done", |cluster| (0..ADDERS).all(|adder| cluster.pending(adder) == 0));
    let mut old: Vec<u64> = adders
        .iter()
        .flat_map(|(fetched, _)| fetched.read_all().chunks(8).map(to_u64).collect::<Vec<_>>())
        .collect();
    old.sort_unstable();
    let count = ADDERS as u64 * EACH;
    assert_eq!(old, (0..count).map(|index| 1000 + 7 * index).collect::<Vec<_>>());
    assert_eq!(to_u64(&target.read(8, 8)), 1000 + 7 * count);
    assert_eq!((target.read(0, 8), target.read(16, 48)), (vec![0x5a; 8], vec![0x5a; 48]));
}

/// A swap happens when the comparand is equal, and only then; an element that is not aligned is an error.
pub fn swaps_compare<B: Backend>() {
    let Some(mut cluster) = Cluster::<B>::with("swaps_compare", Capabilities::ATOMIC, 2) else { return };
    let kind = cluster.kinds()[0];
    let (target, fetched) = (cluster.memory(1, kind, 16), cluster.memory(0, kind, 16));
    target.write(4, &500_u32.to_le_bytes());
    let remote = cluster.share(1, &target, 0);
    for (compare, operand, after) in [(1_u32, 2_u32, 500_u32), (500, 600, 600), (500, 700, 600)] {
        let before = target.read(4, 4);
        let atomic = Atomic {
            token: cluster.token(),
            operation: AtomicOperation::CompareSwap,
            kind: AtomicKind::U32,
            operand: operand.into(),
            compare: compare.into(),
            target: remote,
            target_offset: 4,
            fetched: fetched.region,
            fetched_offset: 8,
        };
        cluster.when_room("an atomic is taken", |cluster| cluster.try_atomic(0, &atomic));
        cluster.until("the atomic is done", |cluster| cluster.pending(0) == 0);
        assert_eq!(cluster.seen(0).last(), Some(&Seen::Done(atomic.token)));
        assert_eq!((target.read(4, 4), fetched.read(8, 4)), (after.to_le_bytes().to_vec(), before));
        let crooked = Atomic { token: Token(0), target_offset: 2, ..atomic };
        assert!(matches!(cluster.transport(0).atomic(&crooked), Err(TransportError::OutOfRange { .. })));
    }
}

fn to_u64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}
