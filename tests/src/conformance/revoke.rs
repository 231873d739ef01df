//! Taking memory back while peers and queues are busy with it.

use super::put::{plain, post_until_full};
use super::{Backend, Cluster, MemoryKind, Seen, TestMemory, pattern, peer};
use gradwire_transport::{Capabilities, FailReason, Get, Notice, Posted, Put, Tag};

/// The source of queued puts is taken back and changed: each put is done or has failed, and nothing that the source
/// held afterwards ever shows up at the target, which takes no harm.
pub fn a_queue_does_not_read_a_revoked_source<B: Backend>() {
    let test = "a_queue_does_not_read_a_revoked_source";
    let Some(mut cluster) = Cluster::<B>::with(test, Capabilities::REVOKE, 2) else { return };
    let len = cluster.limits().put.min(256 << 10);
    let slots = 32;
    for kind in cluster.kinds() {
        // Taken back before anybody is driven, and after some turns.
        for turns in [0, 1, 2, 5, 20] {
            let (source, target) =
                (cluster.memory(0, kind, slots * len), cluster.memory(1, kind, slots * len));
            source.write(0, &vec![0xaa; slots * len]);
            let remote = cluster.share(1, &target, 0);
            let posted = post_until_full(&mut cluster, 0, &source, remote, len);
            assert!(posted > 0);
            cluster.turns(turns);
            cluster.transport(0).deregister(source.region);
            source.write(0, &vec![0xbb; slots * len]);
            cluster.until("all puts have ended", |cluster| cluster.pending(0) == 0);
            assert_alive(&mut cluster, turns);
            cluster.quiet();
            let failed =
                |seen: &Seen| matches!(seen, Seen::Failed(_, reason) if *reason != FailReason::Revoked);
            assert_eq!(cluster.count(0, failed), 0, "{:?}", cluster.seen(0));
            assert!(!target.read_all().contains(&0xbb), "{kind:?}: a revoked source was read");
            // What was raised has arrived as it was.
            for slot in 0..slots {
                if cluster.is_notified(1, peer(0), Notice::new(1, slot as u16)) {
                    assert!(target.read(slot * len, len) == vec![0xaa; len], "slot {slot}");
                }
            }
            cluster.transport(1).deregister(target.region);
            cluster.forget(0);
            cluster.forget(1);
        }
    }
}

/// The target of puts is taken back half-way: from that moment on no byte of it changes, and the origin, which could
/// not know, keeps its connection.
pub fn peers_do_not_write_a_revoked_target<B: Backend>() {
    let test = "peers_do_not_write_a_revoked_target";
    let Some(mut cluster) = Cluster::<B>::with(test, Capabilities::REVOKE, 2) else { return };
    let len = cluster.limits().put.min(256 << 10);
    let slots = 32;
    for kind in cluster.kinds() {
        for turns in [0, 1, 2, 3, 5, 8, 13, 40] {
            let (source, target) =
                (cluster.memory(0, kind, slots * len), cluster.memory(1, kind, slots * len));
            source.write(0, &pattern(turns, slots * len));
            let remote = cluster.share(1, &target, 0);
            let posted = post_until_full(&mut cluster, 0, &source, remote, len);
            assert!(posted > 0);
            cluster.turns(turns);
            cluster.transport(1).deregister(target.region);
            let snapshot = target.read_all();
            let notified = cluster.count(1, |seen| matches!(seen, Seen::Notified(..)));
            cluster.until("all puts have ended", |cluster| cluster.pending(0) == 0);
            assert_alive(&mut cluster, turns);
            cluster.quiet();
            assert!(target.read_all() == snapshot, "{kind:?}: a revoked target was written");
            // The memory is the holder's alone: whatever it writes stays.
            target.write(0, &vec![0xcc; slots * len]);
            let late = Put {
                notice: Some(Notice::new(4, 4)),
                ..plain(cluster.token(), len, (source.region, 0), (remote, 0))
            };
            if cluster.try_put(0, &late) == Ok(Posted::Queued) {
                cluster.until("the late put has ended", |cluster| cluster.pending(0) == 0);
            }
            assert_alive(&mut cluster, turns + 1000);
            cluster.quiet();
            assert!(target.read_all() == vec![0xcc; slots * len], "{kind:?}: a revoked target was written");
            if kind == MemoryKind::Registered || notified == 0 {
                let raised = cluster.count(1, |seen| *seen == Seen::Notified(peer(0), Notice::new(4, 4)));
                assert_eq!(raised, 0, "the notice of a put that was thrown away");
            }
            cluster.transport(0).deregister(source.region);
            cluster.forget(0);
            cluster.forget(1);
        }
    }
}

/// The slot of a revoked region is used again: what was meant for the old one does not reach the new one.
pub fn a_new_region_gets_nothing_of_the_old_one<B: Backend>() {
    let test = "a_new_region_gets_nothing_of_the_old_one";
    let Some(mut cluster) = Cluster::<B>::with(test, Capabilities::REVOKE, 2) else { return };
    let len = cluster.limits().put.min(64 << 10);
    for kind in cluster.kinds() {
        let source = cluster.memory(0, kind, 8 * len);
        source.write(0, &vec![0xaa; 8 * len]);
        let old = cluster.memory(1, kind, 8 * len);
        let remote = cluster.share(1, &old, 0);
        post_until_full(&mut cluster, 0, &source, remote, len);
        cluster.turn();
        cluster.transport(1).deregister(old.region);
        let new: Vec<TestMemory> = (0..4).map(|_| cluster.memory(1, kind, 8 * len)).collect();
        let shared: Vec<_> = new.iter().map(|memory| cluster.share(1, memory, 0)).collect();
        cluster.until("all puts have ended", |cluster| cluster.pending(0) == 0);
        cluster.quiet();
        assert!(new.iter().all(|memory| memory.read_all() == vec![0; 8 * len]), "{kind:?}");
        // And they do get what is meant for them.
        for (index, remote) in (0_u16..).zip(shared) {
            let put = Put {
                notice: Some(Notice::new(5, index)),
                ..plain(cluster.token(), len, (source.region, 0), (remote, len))
            };
            cluster.put(0, &put);
            cluster.until("the notice is raised", |cluster| {
                cluster.is_notified(1, peer(0), Notice::new(5, index))
            });
            assert!(new[usize::from(index)].read(len, len) == vec![0xaa; len]);
        }
        for memory in &new {
            cluster.transport(1).deregister(memory.region);
        }
        cluster.transport(0).deregister(source.region);
        cluster.until("all puts have ended", |cluster| cluster.pending(0) == 0);
        cluster.forget(1);
    }
}

/// A get whose target is taken back writes nothing there; one whose source is gone fails.
pub fn gets_respect_revocation<B: Backend>() {
    let needs = Capabilities::REVOKE | Capabilities::GET;
    let Some(mut cluster) = Cluster::<B>::with("gets_respect_revocation", needs, 2) else { return };
    let is_mapped = cluster.transport(1).capabilities().contains(Capabilities::DIRECT);
    let len = cluster.limits().put.min(64 << 10);
    for kind in cluster.kinds() {
        for turns in [0, 1, 2, 4] {
            let (target, source) = (cluster.memory(0, kind, len), cluster.memory(1, kind, len));
            source.write(0, &pattern(turns, len));
            let remote = cluster.share(1, &source, 0);
            let get = Get {
                token: cluster.token(),
                len,
                source: remote,
                source_offset: 0,
                target: target.region,
                target_offset: 0,
            };
            cluster.when_room("a get is taken", |cluster| cluster.try_get(0, &get));
            cluster.turns(turns);
            cluster.transport(0).deregister(target.region);
            let snapshot = target.read_all();
            cluster.until("the get has ended", |cluster| cluster.pending(0) == 0);
            cluster.quiet();
            assert!(target.read_all() == snapshot, "a revoked target was written");

            // What the source holds from now on is nobody's business. A peer that has it mapped may still find there
            // what it held before.
            let second = cluster.memory(0, kind, len);
            cluster.transport(1).deregister(source.region);
            source.write(0, &vec![0xdd; len]);
            let get = Get { token: cluster.token(), target: second.region, ..get };
            if cluster.try_get(0, &get) == Ok(Posted::Queued) {
                cluster.until("the get has ended", |cluster| cluster.pending(0) == 0);
                match cluster.seen(0).last() {
                    Some(Seen::Failed(..)) => assert_eq!(second.read_all(), vec![0; len]),
                    other => {
                        assert!(is_mapped, "{other:?}");
                        assert_eq!(second.read_all(), pattern(turns, len));
                    }
                }
            }
            cluster.transport(0).deregister(second.region);
            assert_alive(&mut cluster, turns);
            cluster.forget(1);
        }
    }
}

/// A message gets through in either direction.
fn assert_alive<B: Backend>(cluster: &mut Cluster<B>, number: u64) {
    let text = pattern(number, 50);
    for from in 0..2 {
        let before = cluster.messages(1 - from, peer(from)).len();
        cluster.send(from, peer(1 - from), Tag(number as u32), &text);
        cluster.until("a message arrives", |cluster| cluster.messages(1 - from, peer(from)).len() > before);
        let messages = cluster.messages(1 - from, peer(from));
        assert_eq!(messages.last(), Some(&(Tag(number as u32), text.as_slice())));
    }
}
