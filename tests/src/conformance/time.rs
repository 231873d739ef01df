//! Time comes from the caller, and nobody has to poll.

use super::{Backend, Cluster, Rest, Seen, peer, rest_on_readiness};
use gradwire_transport::{Activity, EventRef, Events, LossReason, Peer, Posted, Tag, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// Waiting for a peer that never connects ends by the caller's clock and by no other, be it hours slow or days fast.
pub fn time_is_what_the_caller_says<B: Backend>() {
    const HOUR: Duration = Duration::from_secs(3600);
    let now = Instant::now();
    for start in [now.checked_sub(2 * HOUR), now.checked_add(1000 * HOUR)] {
        let start = start.expect("a clock with room before and after");
        let mut cluster = Cluster::<B>::new(2);
        cluster.frozen = Some(start);
        cluster.connect(0, 1);
        for _ in 0..1000 {
            cluster.turn();
        }
        assert_eq!(cluster.seen(0), [], "no time has passed");
        let deadline = cluster.transport(0).deadline().expect("patience has an end");
        // It may be that of the first attempt only. But an hour is more than enough for all.
        assert!(deadline >= start && deadline <= start + HOUR, "a deadline by another clock");
        for second in 1..=HOUR.as_secs() {
            cluster.frozen = Some(start + Duration::from_secs(second));
            cluster.turn();
        }
        let unreachable = |seen: &Seen| matches!(seen, Seen::PeerLost(_, LossReason::Unreachable { .. }));
        assert_eq!(cluster.count(0, unreachable), 1, "an hour has passed: {:?}", cluster.seen(0));
    }
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
        let mut deadline = fall_asleep(&mut cluster);
        cluster.send(0, peer(1), Tag(round), b"wake up");
        let start = Instant::now();
        while cluster.messages(1, peer(0)).len() <= round as usize {
            assert!(start.elapsed() < Duration::from_secs(20), "round {round}: it was not woken");
            // The sender goes on. The sleeper is driven only when its descriptor says so, or when the deadline has
            // come that it named before it fell asleep.
            cluster.turn();
            cluster.advance();
            if is_readable(&mut cluster) || deadline.is_some_and(|deadline| deadline <= cluster.backend.now())
            {
                cluster.drive(1, true);
                cluster.turn();
                deadline = fall_asleep(&mut cluster);
            }
        }
        cluster.drive(1, true);
    }
}

/// Endpoint 1 goes to sleep; from now on it is not driven. Returns when it wants to be, in any case.
fn fall_asleep<B: Backend>(cluster: &mut Cluster<B>) -> Option<Instant> {
    while !cluster.transport(1).prepare_sleep() {
        cluster.turn();
    }
    cluster.drive(1, false);
    cluster.transport(1).deadline()
}

fn is_readable<B: Backend>(cluster: &mut Cluster<B>) -> bool {
    let fd = cluster.transport(1).readiness().expect("as before");
    let brief = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&brief)).expect("poll") > 0
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

/// Two endpoints on threads of their own, each of which sleeps when it has nothing to do, talk to each other.
pub fn threads_that_sleep_wake_each_other<B: Backend>() {
    const ROUNDS: u32 = 300;
    if !B::IS_REAL_TIME {
        return Cluster::<B>::skip("threads_that_sleep_wake_each_other", "its time is its own");
    }
    let mut cluster = Cluster::<B>::connected(2);
    let (left, right) = (cluster.take(0), cluster.take(1));
    std::thread::scope(|scope| {
        let left = scope.spawn(|| play::<B>(left, peer(1), ROUNDS, true));
        let right = scope.spawn(|| play::<B>(right, peer(0), ROUNDS, false));
        // Nobody leaves before both have heard everything.
        let _endpoints = (left.join().expect("the left one"), right.join().expect("the right one"));
    });
}

/// Sends a number back and forth, each time one more. The one that has the ball sends first.
fn play<B: Backend>(
    mut endpoint: Box<dyn Transport>,
    other: Peer,
    rounds: u32,
    mut has_ball: bool,
) -> Box<dyn Transport> {
    let mut events = Events::new();
    let (mut next, mut rest) = (0, Rest::Woken);
    while next < 2 * rounds {
        if has_ball && endpoint.send(other, Tag(next), &next.to_le_bytes()) == Ok(Posted::Queued) {
            (has_ball, next) = (false, next + 1);
        }
        events.clear();
        let activity = endpoint.progress(Instant::now(), &mut events).expect("progress");
        for event in events.iter() {
            if let EventRef::Received(_, tag, bytes) = event {
                assert_eq!((tag, bytes), (Tag(next), next.to_le_bytes().as_slice()));
                (has_ball, next) = (true, next + 1);
            }
        }
        assert!(rest != Rest::Undisturbed, "{}: nobody woke it: {next}, {activity:?}", B::NAME);
        rest = match activity {
            Activity::Idle if next < 2 * rounds => {
                rest_on_readiness(&mut [&mut *endpoint], Duration::from_secs(5))
            }
            _ => Rest::Woken,
        };
    }
    endpoint
}
