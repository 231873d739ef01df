//! One-sided writes and reads: every byte where it belongs, no other byte touched, nothing readable too early.

use super::{Backend, Cluster, Seen, TestMemory, pattern, peer};
use gradwire_transport::{
    Capabilities, Get, Notice, Posted, Put, Region, RemoteRegion, Token, TransportError,
};

/// A put without a notice.
pub(super) fn plain(
    token: Token,
    len: usize,
    (source, source_offset): (Region, usize),
    (target, target_offset): (RemoteRegion, usize),
) -> Put {
    Put { token, len, source, source_offset, target, target_offset, notice: None }
}

/// Puts of the first `len` bytes, one after the other, until no more are taken and without driving anybody. Put `i`
/// goes to the target's bytes from `i * len` on, as long as both memories go that far. Returns how many there are.
pub(super) fn post_until_full<B: Backend>(
    cluster: &mut Cluster<B>,
    index: usize,
    source: &TestMemory,
    target: RemoteRegion,
    len: usize,
) -> usize {
    let room = source.read_all().len() / len;
    (0..room)
        .take_while(|slot| {
            let put = Put {
                notice: Some(Notice::new(1, *slot as u16)),
                ..plain(cluster.token(), len, (source.region, slot * len), (target, slot * len))
            };
            cluster.try_put(index, &put) == Ok(Posted::Queued)
        })
        .count()
}

/// Sizes and offsets around every boundary, with and without a notice, for each kind of memory on either side.
pub fn puts_write_what_they_say_and_nothing_else<B: Backend>() {
    const LEN: usize = 64 << 10;
    let mut cluster = Cluster::<B>::connected(2);
    let max = cluster.limits().put.min(LEN - 200);
    for (round, source_kind, target_kind) in cluster.pairs() {
        let (source, target) = (cluster.memory(0, source_kind, LEN), cluster.memory(1, target_kind, LEN));
        source.write(0, &pattern(round, LEN));
        let mut expected = pattern(round + 1000, LEN);
        target.write(0, &expected);
        let remote = cluster.share(1, &target, 0);
        let places = [
            (0, 0, 1),
            (0, LEN - 1, 1),
            (LEN - 1, 0, 1),
            (3, 5, 7),
            (64, 128, 64),
            (1, 130, 63),
            (65, 200, 65),
            (4096, 8192, 4096),
            (4095, 20_000, 4097),
            (100, 150, max),
            (77, 0, max),
        ];
        for (segment, (source_offset, target_offset, len)) in places.into_iter().enumerate() {
            let notice = (segment % 3 != 1).then_some(Notice::new(round as u16, segment as u16));
            let put = Put {
                notice,
                ..plain(cluster.token(), len, (source.region, source_offset), (remote, target_offset))
            };
            cluster.put(0, &put);
            match notice {
                Some(notice) => {
                    cluster.until("the notice is raised", |cluster| cluster.is_notified(1, peer(0), notice));
                }
                // Nothing tells when it has arrived. It has when all are at rest.
                None => cluster.quiet(),
            }
            expected[target_offset..target_offset + len].copy_from_slice(&source.read(source_offset, len));
            assert_same(&target.read_all(), &expected, &format!("{put:?}"));
        }
        cluster.until("all puts are done", |cluster| cluster.pending(0) == 0);
        assert_eq!(cluster.count(0, |seen| matches!(seen, Seen::Failed(..))), 0);
        assert!(source.read_all() == pattern(round, LEN), "a source was changed");
        cluster.transport(0).release(remote);
        cluster.transport(0).deregister(source.region);
        cluster.transport(1).deregister(target.region);
    }
}

/// An empty put carries a notice and touches nothing, also at the very end of a region, and of an empty region.
pub fn empty_puts_carry_their_notice<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    for (round, source_kind, target_kind) in cluster.pairs() {
        for (step, len) in [100_usize, 0].into_iter().enumerate() {
            let (source, target) = (cluster.memory(0, source_kind, len), cluster.memory(1, target_kind, len));
            target.write(0, &pattern(round, len));
            let remote = cluster.share(1, &target, 0);
            let notice = Notice::new(round as u16, step as u16);
            let token = cluster.token();
            let put = Put { notice: Some(notice), ..plain(token, 0, (source.region, len), (remote, len)) };
            cluster.put(0, &put);
            cluster.until("the notice is raised", |cluster| {
                cluster.is_notified(1, peer(0), notice) && cluster.pending(0) == 0
            });
            assert_eq!(cluster.count(0, |seen| *seen == Seen::Done(token)), 1);
            assert_eq!(target.read_all(), pattern(round, len));
            cluster.transport(0).deregister(source.region);
            cluster.transport(1).deregister(target.region);
        }
    }
}

/// The moment a notice is reported all bytes of its put can be read, though many are on the way in any order.
pub fn a_notice_means_that_the_bytes_are_there<B: Backend>() {
    const SLOTS: usize = 64;
    let mut cluster = Cluster::<B>::connected(2);
    let len = cluster.limits().put.min(20_000);
    let kind = cluster.kinds()[0];
    let (source, target) = (cluster.memory(0, kind, SLOTS * len), cluster.memory(1, kind, SLOTS * len));
    source.write(0, &pattern(7, SLOTS * len));
    let remote = cluster.share(1, &target, 0);
    let mut checked = 0;
    let mut check = |cluster: &mut Cluster<B>| {
        for seen in &cluster.seen(1)[checked..] {
            if let Seen::Notified(_, notice) = seen {
                let offset = usize::from(notice.segment()) * len;
                assert!(
                    target.read(offset, len) == source.read(offset, len),
                    "{notice:?} came before its bytes"
                );
            }
        }
        checked = cluster.seen(1).len();
    };
    for slot in 0..SLOTS {
        let put = Put {
            notice: Some(Notice::new(9, slot as u16)),
            ..plain(cluster.token(), len, (source.region, slot * len), (remote, slot * len))
        };
        cluster.when_room("a put is taken", |cluster| {
            check(cluster);
            cluster.try_put(0, &put)
        });
    }
    cluster.until("all notices are raised", |cluster| {
        check(cluster);
        (0..SLOTS).all(|slot| cluster.is_notified(1, peer(0), Notice::new(9, slot as u16)))
    });
}

/// After `Done` the source may be changed: what arrives is what it held before.
pub fn a_source_may_be_changed_once_its_put_is_done<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let len = cluster.limits().put.min(100_000);
    for (round, source_kind, target_kind) in cluster.pairs() {
        let (source, target) = (cluster.memory(0, source_kind, len), cluster.memory(1, target_kind, len));
        let remote = cluster.share(1, &target, 0);
        for step in 0..4_u16 {
            let bytes = pattern(round * 10 + u64::from(step), len);
            source.write(0, &bytes);
            let (token, notice) = (cluster.token(), Notice::new(round as u16, step));
            let put = Put { notice: Some(notice), ..plain(token, len, (source.region, 0), (remote, 0)) };
            cluster.put(0, &put);
            cluster.until("the put is done", |cluster| cluster.pending(0) == 0);
            source.write(0, &vec![0xee; len]);
            cluster.until("the notice is raised", |cluster| cluster.is_notified(1, peer(0), notice));
            assert_same(&target.read_all(), &bytes, "the target");
        }
        cluster.transport(0).deregister(source.region);
        cluster.transport(1).deregister(target.region);
    }
}

/// A target that nobody drives holds puts up, but does not lose them.
pub fn an_undriven_target_gets_everything_later<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let len = cluster.limits().put.min(64 << 10);
    let slots = 100;
    let kind = cluster.kinds()[0];
    let (source, target) = (cluster.memory(0, kind, slots * len), cluster.memory(1, kind, slots * len));
    source.write(0, &pattern(3, slots * len));
    let remote = cluster.share(1, &target, 0);
    cluster.drive(1, false);
    let mut posted = 0;
    let mut turns = 0;
    while turns < 1000 && posted < slots {
        turns += 1;
        let put = Put {
            notice: Some(Notice::new(2, posted as u16)),
            ..plain(cluster.token(), len, (source.region, posted * len), (remote, posted * len))
        };
        posted += usize::from(cluster.try_put(0, &put).expect("put") == Posted::Queued);
        cluster.turn();
    }
    assert_eq!(cluster.count(1, |seen| matches!(seen, Seen::Notified(..))), 0, "events without progress");
    cluster.drive(1, true);
    cluster.until("all notices are raised", |cluster| {
        (0..posted).all(|slot| cluster.is_notified(1, peer(0), Notice::new(2, slot as u16)))
    });
    assert!(target.read(0, posted * len) == pattern(3, slots * len)[..posted * len]);
}

/// A range outside a region, or more bytes than a put carries, is an error at the origin and does nothing.
pub fn puts_outside_are_refused_at_the_origin<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let max = cluster.limits().put;
    let kind = cluster.kinds()[0];
    let (source, target) = (cluster.memory(0, kind, 1000), cluster.memory(1, kind, 2000));
    target.write(0, &pattern(1, 2000));
    let remote = cluster.share(1, &target, 0);
    let out_of_range = |offset, len, region_len| Err(TransportError::OutOfRange { offset, len, region_len });
    for (offset, len) in [(0, 1001), (1000, 1), (1001, 0), (usize::MAX, 2)] {
        let put = plain(cluster.token(), len, (source.region, offset), (remote, 0));
        assert_eq!(cluster.try_put(0, &put), out_of_range(offset, len, 1000), "source");
    }
    for (offset, len) in [(2000, 1), (1999, 2), (2001, 0), (usize::MAX, 2), (usize::MAX - 1, 1)] {
        let put = plain(cluster.token(), len, (source.region, 0), (remote, offset));
        assert_eq!(cluster.try_put(0, &put), out_of_range(offset, len, 2000), "target");
    }
    let put = plain(cluster.token(), max + 1, (source.region, 0), (remote, 0));
    let verdict = cluster.try_put(0, &put);
    let is_refused = matches!(
        verdict,
        Err(TransportError::TooLong { len, .. } | TransportError::OutOfRange { len, .. }) if len == max + 1
    );
    assert!(is_refused, "{verdict:?}");
    let unknown = [Region::new(900, 0), Region::new(source.region.index(), source.region.generation() + 1)];
    for region in unknown {
        let put = plain(cluster.token(), 1, (region, 0), (remote, 0));
        assert_eq!(cluster.try_put(0, &put), out_of_range(0, 1, 0), "unknown source");
    }
    let verdict =
        cluster.transport(0).put(&plain(Token(0), 1, (source.region, 0), (RemoteRegion::new(900, 0), 0)));
    assert_eq!(verdict, out_of_range(0, 1, 0), "unknown target");
    cluster.quiet();
    assert!(target.read_all() == pattern(1, 2000), "a refused put wrote");
    let put = Put {
        notice: Some(Notice::new(1, 1)),
        ..plain(cluster.token(), 1000, (source.region, 0), (remote, 1000))
    };
    cluster.put(0, &put);
    cluster.until("a good put arrives", |cluster| cluster.is_notified(1, peer(0), Notice::new(1, 1)));
}

/// Three origins write into one region at a time.
pub fn many_origins_share_a_target<B: Backend>() {
    const ORIGINS: usize = 3;
    const PUTS: usize = 20;
    let mut cluster = Cluster::<B>::connected(ORIGINS + 1);
    let len = cluster.limits().put.min(5000) - 1;
    let kind = cluster.kinds()[0];
    let target = cluster.memory(ORIGINS, kind, ORIGINS * PUTS * len);
    let mut sources = Vec::new();
    for origin in 0..ORIGINS {
        let source = cluster.memory(origin, kind, PUTS * len);
        source.write(0, &pattern(origin as u64, PUTS * len));
        sources.push((source, cluster.share(ORIGINS, &target, origin)));
    }
    for step in 0..PUTS {
        for (origin, (source, remote)) in sources.iter().enumerate() {
            let put = Put {
                notice: Some(Notice::new(origin as u16, step as u16)),
                ..plain(
                    cluster.token(),
                    len,
                    (source.region, step * len),
                    (*remote, (step * ORIGINS + origin) * len),
                )
            };
            cluster.put(origin, &put);
        }
    }
    cluster.until("all notices are raised", |cluster| {
        (0..ORIGINS).all(|origin| {
            (0..PUTS).all(|step| {
                cluster.is_notified(ORIGINS, peer(origin), Notice::new(origin as u16, step as u16))
            })
        })
    });
    for step in 0..PUTS {
        for (origin, (source, _)) in sources.iter().enumerate() {
            let bytes = target.read((step * ORIGINS + origin) * len, len);
            assert_same(&bytes, &source.read(step * len, len), &format!("put {step} of {origin}"));
        }
    }
}

/// A get fetches what it says, and changes nothing else on either side.
pub fn gets_fetch_what_they_say<B: Backend>() {
    let Some(mut cluster) = Cluster::<B>::with("gets_fetch_what_they_say", Capabilities::GET, 2) else {
        return;
    };
    const LEN: usize = 10_000;
    for (round, here, there) in cluster.pairs() {
        let (target, source) = (cluster.memory(0, here, LEN), cluster.memory(1, there, LEN));
        source.write(0, &pattern(round, LEN));
        let mut expected = pattern(round + 500, LEN);
        target.write(0, &expected);
        let remote = cluster.share(1, &source, 0);
        for (source_offset, target_offset, len) in
            [(0, 0, LEN), (1, 2, 3), (LEN - 1, 0, 1), (0, LEN - 1, 1), (63, 65, 4097), (LEN, LEN, 0)]
        {
            let get = Get {
                token: cluster.token(),
                len,
                source: remote,
                source_offset,
                target: target.region,
                target_offset,
            };
            cluster.when_room("a get is taken", |cluster| cluster.try_get(0, &get));
            cluster.until("the get is done", |cluster| cluster.pending(0) == 0);
            assert_eq!(cluster.seen(0).last(), Some(&Seen::Done(get.token)));
            expected[target_offset..target_offset + len]
                .copy_from_slice(&pattern(round, LEN)[source_offset..source_offset + len]);
            assert_same(&target.read_all(), &expected, &format!("{get:?}"));
        }
        let outside = Get {
            token: Token(0),
            len: 2,
            source: remote,
            source_offset: LEN - 1,
            target: target.region,
            target_offset: 0,
        };
        let verdict = cluster.transport(0).get(&outside);
        assert_eq!(verdict, Err(TransportError::OutOfRange { offset: LEN - 1, len: 2, region_len: LEN }));
        assert!(source.read_all() == pattern(round, LEN), "a source was changed");
        cluster.transport(0).deregister(target.region);
        cluster.transport(1).deregister(source.region);
    }
}

/// Equal, or where they first differ.
pub(super) fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    assert_eq!(found.len(), expected.len());
    if let Some(first) = (0..found.len()).find(|index| found[*index] != expected[*index]) {
        let differing = (0..found.len()).filter(|index| found[*index] != expected[*index]).count();
        panic!(
            "{what}: {differing} bytes differ, the first one at {first}: {} for {}",
            found[first], expected[first]
        );
    }
}
