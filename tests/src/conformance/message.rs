//! Messages: whole, once, in order.

use super::{Backend, Cluster, pattern, peer};
use gradwire_transport::{Posted, Tag, TransportError};

/// More messages than anybody should take that are not received.
const MANY: u32 = 1 << 14;

/// Every size around every boundary, in both directions at once.
pub fn messages_arrive_whole_and_in_order<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let limits = cluster.limits();
    let around = [0, 8, 64, limits.inline, 256, 4096, limits.send / 2, limits.send];
    let mut sizes: Vec<usize> =
        around.iter().flat_map(|&size| [size.saturating_sub(1), size, size + 1]).collect();
    sizes.retain(|size| *size <= limits.send);
    let text = |from: usize, index: usize, size: usize| pattern((from << 32 | index) as u64, size);
    for (index, &size) in sizes.iter().enumerate() {
        for from in 0..2 {
            // The other direction goes from the largest to the smallest.
            let size = if from == 0 { size } else { sizes[sizes.len() - 1 - index] };
            cluster.send(from, peer(1 - from), Tag((from * 1000 + index) as u32), &text(from, index, size));
        }
    }
    cluster.until("all messages arrive", |cluster| {
        (0..2).all(|at| cluster.messages(at, peer(1 - at)).len() == sizes.len())
    });
    for from in 0..2 {
        for (index, (tag, bytes)) in cluster.messages(1 - from, peer(from)).into_iter().enumerate() {
            let size = sizes[if from == 0 { index } else { sizes.len() - 1 - index }];
            assert_eq!(tag, Tag((from * 1000 + index) as u32));
            assert!(bytes == text(from, index, size), "message {index} of {size} bytes was changed");
        }
    }
}

/// A message above the limit is an error and sends nothing.
pub fn a_message_that_is_too_long_is_an_error<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let max = cluster.limits().send;
    let bytes = vec![1; max + 1];
    let verdict = cluster.transport(0).send(peer(1), Tag(1), &bytes);
    assert_eq!(verdict, Err(TransportError::TooLong { len: max + 1, max }));
    cluster.send(0, peer(1), Tag(2), &bytes[..max]);
    cluster.until("the other message arrives", |cluster| !cluster.messages(1, peer(0)).is_empty());
    assert_eq!(cluster.messages(1, peer(0)), [(Tag(2), &bytes[..max])]);
}

/// Back-pressure: a receiver that nobody drives makes the sender's queue fill up, at a bound, and nothing is lost
/// or sent twice.
pub fn full_has_queued_nothing<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let len = cluster.limits().send.min(4096);
    let text = |index: u32| pattern(index.into(), len - index as usize % 7);
    cluster.drive(1, false);
    let mut sent = 0;
    // Full must come, and come again however often only the sender is driven.
    let mut full = 0;
    while full < 50 {
        assert!(sent < MANY, "64 MiB are under way, and the queue is not full");
        match cluster.transport(0).send(peer(1), Tag(sent), &text(sent)).expect("send") {
            Posted::Queued => sent += 1,
            Posted::Full => {
                full += 1;
                cluster.turn();
            }
        }
    }
    cluster.drive(1, true);
    for _ in 0..10 {
        cluster.send(0, peer(1), Tag(sent), &text(sent));
        sent += 1;
    }
    cluster.until("all messages arrive", |cluster| cluster.messages(1, peer(0)).len() >= sent as usize);
    cluster.quiet();
    let messages = cluster.messages(1, peer(0));
    assert_eq!(messages.len(), sent as usize);
    for (index, (tag, bytes)) in messages.into_iter().enumerate() {
        assert_eq!(tag, Tag(index as u32));
        assert!(bytes == text(index as u32), "message {index} was changed");
    }
}

/// After `Full`, `progress` says `Busy` when it is time to try again: whoever goes by that alone gets on.
pub fn activity_announces_room<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let bytes = pattern(1, cluster.limits().send);
    let mut sent = 0;
    for _ in 0..20 {
        // Full for good: the sender has nothing left to do as long as the receiver is not driven.
        cluster.drive(1, false);
        let bound = sent + MANY;
        loop {
            assert!(sent < bound, "no end of messages under way, and the queue is not full");
            match cluster.transport(0).send(peer(1), Tag(sent), &bytes).expect("send") {
                Posted::Queued => sent += 1,
                Posted::Full if cluster.take_busy(0) => cluster.quiet(),
                Posted::Full => break,
            }
            cluster.turn();
        }
        cluster.drive(1, true);
        while cluster.transport(0).send(peer(1), Tag(sent), &bytes) == Ok(Posted::Full) {
            cluster.until("the sender is told that there is room", |cluster| cluster.take_busy(0));
        }
        sent += 1;
    }
    cluster.until("all messages arrive", |cluster| cluster.messages(1, peer(0)).len() == sent as usize);
}
