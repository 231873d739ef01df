//! Many messages of all kinds at once, whose receivers check that none is lost, doubled, overtaken or damaged.

use gradwire::{Communicator, Received, Source, Tag};
use gradwire_tests::ranks::{Over, Random, run};
use std::sync::atomic::{AtomicUsize, Ordering};

const RANKS: usize = 4;
const MESSAGES: usize = 500;
const TAGS: u64 = 3;

/// A message as all ranks know it beforehand.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Plan {
    from: usize,
    to: usize,
    tag: u32,
    count: usize,
    /// Distinct for each.
    seed: u64,
}

impl Plan {
    fn random(random: &mut Random) -> Self {
        let count = match random.below(8) {
            0 => 0,
            1..5 => random.below(40),
            5 | 6 => random.below(4000),
            _ => random.below(30_000),
        };
        Self {
            from: random.below(RANKS as u64) as usize,
            to: random.below(RANKS as u64) as usize,
            tag: random.below(TAGS) as u32,
            count: count as usize,
            seed: random.next(),
        }
    }

    fn values(&self) -> Vec<u64> {
        (0..self.count as u64).map(|index| self.seed.wrapping_add(index * index)).collect()
    }
}

pub(crate) fn storm(over: Over) {
    static SEED: AtomicUsize = AtomicUsize::new(0);
    let first = SEED.fetch_add(3, Ordering::Relaxed) as u64;
    for seed in first..first + 3 {
        let mut random = Random::new(seed);
        let all: Vec<Plan> = (0..MESSAGES).map(|_| Plan::random(&mut random)).collect();
        run(over, RANKS, |comm| {
            comm.set_send_buffer(256 << 20);
            take_part(&comm, &all, Random::new(seed * 31 + comm.rank() as u64 + 1));
        });
    }
}

fn take_part(comm: &Communicator, all: &[Plan], mut random: Random) {
    let mut expected: Vec<Plan> = all.iter().filter(|plan| plan.to == comm.rank()).copied().collect();
    for plan in all.iter().filter(|plan| plan.from == comm.rank()) {
        send(comm, plan, &mut random);
        if random.below(3) == 0
            && let Some(received) = comm.test_probe::<u64>(Source::Any, Tag::Any).unwrap()
        {
            receive(comm, &mut expected, (received.source.into(), received.tag.into()), &mut random);
        }
    }
    while !expected.is_empty() {
        let plan = expected[random.below(expected.len() as u64) as usize];
        let source = if random.below(2) == 0 { Source::Any } else { plan.from.into() };
        let tag = if random.below(2) == 0 { Tag::Any } else { plan.tag.into() };
        receive(comm, &mut expected, (source, tag), &mut random);
    }
    comm.barrier().unwrap();
    assert_eq!(comm.test_probe::<u64>(Source::Any, Tag::Any).unwrap(), None);
}

fn send(comm: &Communicator, plan: &Plan, random: &mut Random) {
    let values = plan.values();
    // Whoever waits for others here could be waited for by them.
    if plan.to == comm.rank() && random.below(2) == 0 {
        comm.send(&values, plan.to, plan.tag).unwrap();
    } else {
        comm.buffered_send(&values, plan.to, plan.tag).unwrap();
    }
}

fn receive(comm: &Communicator, expected: &mut Vec<Plan>, (source, tag): (Source, Tag), random: &mut Random) {
    let (values, received) = match random.below(4) {
        0 => comm.recv_vec::<u64>(source, tag).unwrap(),
        1 => {
            drop(comm.matched_probe(source, tag).unwrap());
            comm.matched_probe(source, tag).unwrap().recv_vec().unwrap()
        }
        _ => {
            let mut values = vec![0; 30_000];
            let received = comm.recv(&mut values, source, tag).unwrap();
            values.truncate(received.count);
            (values, received)
        }
    };
    check(expected, received, &values, (source, tag));
}

/// It must be the first of its sender that fits the receive.
fn check(expected: &mut Vec<Plan>, received: Received, values: &[u64], (source, tag): (Source, Tag)) {
    assert!(source == Source::Any || source == received.source.into());
    let first = expected
        .iter()
        .position(|plan| plan.from == received.source && (tag == Tag::Any || tag == plan.tag.into()))
        .expect("a message that nobody sent");
    let plan = expected.remove(first);
    assert_eq!((received.source, received.tag, received.count), (plan.from, plan.tag, plan.count));
    assert!(values == plan.values(), "the message was damaged: {plan:?}");
}
