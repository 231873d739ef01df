//! Time comes from the caller, and nobody has to poll.

use super::{Backend, Cluster, Seen, peer};
use gradwire_transport::{LossReason, Tag};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// Waiting for a peer that never connects ends by the caller's clock, not by any other.
pub fn time_is_what_the_caller_says<B: Backend>() {
    let mut cluster = Cluster::<B>::new(2);
    let start = cluster.backend.now();
    cluster.frozen = Some(start);
    cluster.connect(0, 1);
    for _ in 0..1000 {
        cluster.turn();
    }
    assert_eq!(cluster.seen(0), [], "no time has passed");
    let deadline = cluster.transport(0).deadline().expect("patience has an end");
    // It need not be the end itself: there may be several attempts. But an hour is more than enough for all.
    assert!(deadline >= start && deadline <= start + Duration::from_secs(3600));
    for step in 1..=3600 {
        cluster.frozen = Some(start + Duration::from_secs(step));
        cluster.turn();
    }
    let unreachable = |seen: &Seen| matches!(seen, Seen::PeerLost(_, LossReason::Unreachable { .. }));
    assert_eq!(cluster.count(0, unreachable), 1, "an hour has passed: {:?}", cluster.seen(0));
}

/// Time that seems to run backwards does no harm.
pub fn time_may_stand_still<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let now = cluster.backend.now();
    cluster.frozen = Some(now);
    for _ in 0..100 {
        cluster.turn();
    }
    cluster.frozen = now.checked_sub(Duration::from_millis(1));
    for _ in 0..100 {
        cluster.turn();
    }
    cluster.frozen = None;
    cluster.send(0, peer(1), Tag(1), b"all the same");
    cluster.until("a message arrives", |cluster| !cluster.messages(1, peer(0)).is_empty());
}

/// Whoever sleeps on the descriptor is woken by what arrives, each time.
pub fn a_sleeper_is_woken<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    if cluster.transport(1).readiness().is_none() {
        return Cluster::<B>::skip("a_sleeper_is_woken", "there is nothing to sleep on");
    }
    for round in 0..50 {
        cluster.quiet();
        cluster.drive(1, false);
        // It goes to sleep for good before anything is sent.
        while !cluster.transport(1).prepare_sleep() {
            cluster.drive(1, true);
            cluster.turn();
            cluster.drive(1, false);
        }
        cluster.send(0, peer(1), Tag(round), b"wake up");
        let start = Instant::now();
        while cluster.messages(1, peer(0)).len() <= round as usize {
            assert!(start.elapsed() < Duration::from_secs(20), "round {round}: it was not woken");
            // The sender goes on; the sleeper is driven only when its own descriptor or deadline says so.
            cluster.turn();
            if is_due(&mut cluster) {
                cluster.drive(1, true);
                cluster.turn();
                cluster.drive(1, false);
            } else {
                cluster.advance();
            }
        }
        cluster.drive(1, true);
    }
}

/// Whether the sleeper at 1 would wake up.
fn is_due<B: Backend>(cluster: &mut Cluster<B>) -> bool {
    let now = cluster.backend.now();
    let sleeper = cluster.transport(1);
    let is_readable = {
        let fd = sleeper.readiness().expect("as before");
        let mut polled = [PollFd::new(&fd, PollFlags::IN)];
        let brief = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        poll(&mut polled, Some(&brief)).expect("poll") > 0
    };
    is_readable || sleeper.deadline().is_some_and(|deadline| deadline <= now)
}

/// Two endpoints that sleep whenever they can exchange messages without ever being polled in vain for long.
pub fn sleeping_endpoints_make_progress<B: Backend>() {
    let mut cluster = Cluster::<B>::connected(2);
    let mut rounds = 0;
    while rounds < 100 {
        let from = rounds % 2;
        cluster.send(from, peer(1 - from), Tag(rounds as u32), b"ping");
        // `until` sleeps after each idle turn, and complains about whatever should have woken it.
        cluster.until("it arrives", |cluster| cluster.messages(1 - from, peer(from)).len() > rounds / 2);
        rounds += 1;
    }
}
