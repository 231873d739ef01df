//! Threads of one process as ranks, each with its own transport.

use super::attach::{Attached, Probe};
use super::{BOARD_LEN, Condition, Environment, Group, Memory, Patience, Share};
use crate::Rank;
use crate::buffer::Span;
use crate::direct::Waited;
use gradwire_schema::{CallSignature, Collective};
use gradwire_transport::{
    Allocation, Capabilities, Direct, Event, EventRef, Events, ImportError, Peer, Posted, Region, RegionKey,
    RemoteRegion, Tag, Transport,
};
use gradwire_transport_shm::{Shm, ShmConfig};
use rustix::event::{PollFd, PollFlags, Timespec};

use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

mod blocks;
mod collectives;
mod trouble;

/// Why a test's environment gave up.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Trouble {
    TimedOut(Vec<Rank>),
    Lost(Rank),
}

/// One rank: its group, and the transport that serves it.
struct Member {
    rank: Rank,
    size: usize,
    group: Group,
    around: Around,
}

/// Waits as a driver would.
struct Around {
    shm: Shm,
    patience: Duration,
    lost: Option<Rank>,
}

fn peer(rank: Rank) -> Peer {
    Peer::new(rank as u32, 0)
}

impl Around {
    fn turn(&mut self) {
        let mut events = Events::new();
        self.shm.progress(Instant::now(), &mut events).expect("a working transport");
        for event in events.iter() {
            if let EventRef::Other(Event::PeerLost(peer, _)) = event {
                self.lost.get_or_insert(peer.index() as Rank);
            }
        }
    }
}

impl Environment for Around {
    type Error = Trouble;

    fn wait(&mut self, condition: &Condition<'_>) -> Result<Waited, Trouble> {
        let start = Instant::now();
        let mut looks = 0;
        while !condition.is_ready() {
            self.turn();
            if let Some(rank) = self.lost {
                return Err(Trouble::Lost(rank));
            }
            if start.elapsed() > self.patience {
                return Err(Trouble::TimedOut(condition.missing()));
            }
            looks += 1;
            if looks < 20 {
                std::thread::yield_now();
            } else {
                if condition.park() && self.shm.prepare_sleep() {
                    let fd = self.shm.readiness().expect("a descriptor");
                    let long = Timespec { tv_sec: 5, tv_nsec: 0 };
                    let limit = self.patience.as_nanos() as i64;
                    let timeout = if limit < 5_000_000_000 {
                        Timespec { tv_sec: 0, tv_nsec: limit.min(999_999_999) }
                    } else {
                        long
                    };
                    let rung = rustix::event::poll(
                        &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
                        Some(&timeout),
                    );
                    assert!(
                        rung != Ok(0) || timeout != long || !condition.is_ready(),
                        "nobody rang the bell"
                    );
                }
                condition.unpark();
            }
        }
        Ok(Waited::Ready)
    }

    fn wake(&mut self, rank: Rank) {
        // A full ring wakes as well.
        let _: Result<Posted, _> = self.shm.send(peer(rank), Tag(0), &[]);
    }

    fn import(&mut self, rank: Rank, key: &RegionKey) -> Result<(RemoteRegion, Direct), Trouble> {
        loop {
            match self.shm.import(peer(rank), key) {
                Ok(region) => return Ok((region, self.shm.direct(region).expect("mapped"))),
                Err(ImportError::NotYet) => self.turn(),
                Err(_) => return Err(Trouble::Lost(rank)),
            }
        }
    }

    fn release(&mut self, _: Rank, region: RemoteRegion) {
        self.shm.release(region);
    }
}

/// As [`ranks`], once where ranks cannot read each other's private memory, once where they do from a few bytes on.
fn in_both_ways(size: usize, body: impl Fn(&mut Member) + Sync) {
    ranks(size, &body);
    ranks(size, |member| {
        attach(member);
        body(member);
    });
}

/// Lets a rank read the others' private memory, from a few bytes on.
fn attach(member: &mut Member) {
    let probe = Probe::new().expect("random numbers");
    let told = vec![probe.told(); member.size];
    member.group.attach(Attached::probe(told.iter().map(|told| &told[..])).expect("this very process"));
    member.group.attached_from = 300;
}

/// Runs `body` as each of `size` ranks and returns what they returned, by rank.
fn ranks<R: Send>(size: usize, body: impl Fn(&mut Member) -> R + Sync) -> Vec<R> {
    let addresses = Mutex::new(vec![None; size]);
    let keys = Mutex::new(vec![None; size]);
    let barrier = Barrier::new(size);
    let start = |rank: Rank| {
        let mut around = Around {
            shm: Shm::new(ShmConfig::default()).expect("shared memory"),
            patience: Duration::from_secs(30),
            lost: None,
        };
        assert!(around.shm.capabilities().contains(Capabilities::DIRECT));
        addresses.lock().expect("no panic")[rank] = Some(around.shm.address());
        barrier.wait();
        let others = || (0..size).filter(move |other| *other != rank);
        for other in others() {
            let address = addresses.lock().expect("no panic")[other].clone().expect("told");
            around.shm.connect(peer(other), &address).expect("the same host");
        }
        let (region, own) = around.shm.allocate(BOARD_LEN).expect("memory");
        keys.lock().expect("no panic")[rank] = Some(around.shm.export(region).expect("ours"));
        barrier.wait();
        let mut boards = vec![Direct { address: own.address(), len: own.len() }; size];
        for other in others() {
            let key = keys.lock().expect("no panic")[other].expect("told");
            while around.shm.import(peer(other), &key).is_err() {
                around.turn();
            }
            boards[other] = around.import(other, &key).expect("a good key").1;
        }
        // SAFETY: the transport keeps the mappings; it is dropped after the group. The boards are new.
        let group = unsafe { Group::new(rank, own, boards, Patience::Yield) }.expect("long enough");
        Member { rank, size, group, around }
    };
    std::thread::scope(|scope| {
        let (start, body, barrier) = (&start, &body, &barrier);
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                scope.spawn(move || {
                    let mut member = start(rank);
                    let result = body(&mut member);
                    // Nobody leaves while others still map its memory for what they compare.
                    barrier.wait();
                    result
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// A call on `count` elements.
fn call(collective: Collective, count: usize) -> CallSignature {
    CallSignature { count: count as u64, ..CallSignature::new(collective) }
}

/// Memory of a vector, for one call.
fn span<T>(values: &mut [T]) -> Span {
    // SAFETY: tests use the span for one call only, and the vector not meanwhile.
    unsafe { Span::of_slice(values) }
}

/// Memory that only this rank can reach.
fn private(span: Span) -> Memory {
    Memory { span, share: None }
}

/// Memory that all ranks share.
struct Shared {
    region: Region,
    key: RegionKey,
    allocation: Allocation,
}

impl Shared {
    fn new(member: &mut Member, len: usize) -> Self {
        let (region, allocation) = member.around.shm.allocate(len).expect("memory");
        let key = member.around.shm.export(region).expect("ours");
        Self { region, key, allocation }
    }

    fn memory(&self, range: std::ops::Range<usize>) -> Memory {
        let share = Some(Share { key: self.key, offset: range.start });
        Memory { span: Span::of_allocation(&self.allocation).part(range).expect("inside"), share }
    }

    fn write<T: Copy>(&self, offset: usize, values: &[T]) {
        let mut values = values.to_vec();
        let end = offset + size_of_val(&values[..]);
        self.memory(offset..end).span.copy_from(span(&mut values));
    }

    fn read<T: Copy + Default>(&self, offset: usize, count: usize) -> Vec<T> {
        let mut values = vec![T::default(); count];
        let end = offset + size_of_val(&values[..]);
        span(&mut values).copy_from(self.memory(offset..end).span);
        values
    }
}
