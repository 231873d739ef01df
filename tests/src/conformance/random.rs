//! A thousand operations in random order, beside a model of what they should do.

use super::put::{assert_same, plain};
use super::{Backend, Cluster, Random, Seen, TestMemory, pattern, peer};
use gradwire_transport::{Notice, Posted, Put, Region, RemoteRegion, Tag};
use std::collections::{BTreeMap, VecDeque};

const SIZE: usize = 3;
const OPERATIONS: usize = 1000;
/// Each pair of endpoints has so many slots at the target, each of so many bytes.
const SLOTS: usize = 8;
const SLOT: usize = 3000;

/// Messages and puts between three endpoints, which are driven at random, agree with the model.
pub fn random_operations_agree_with_a_model<B: Backend>() {
    for seed in 1..=4 {
        Run::<B>::new(seed).run();
    }
}

/// The transports under test, and what they should hold.
struct Run<B> {
    cluster: Cluster<B>,
    random: Random,
    sources: Vec<TestMemory>,
    targets: Vec<TestMemory>,
    /// By origin and target.
    remotes: BTreeMap<(usize, usize), RemoteRegion>,
    /// What each target's memory holds.
    expected: Vec<Vec<u8>>,
    /// Messages that were sent and not received yet.
    messages: BTreeMap<(usize, usize), VecDeque<Message>>,
    /// Puts that were posted and not notified yet, by origin, target and slot.
    puts: BTreeMap<(usize, usize, usize), Expected>,
    /// How much of what each endpoint has seen was compared.
    compared: [usize; SIZE],
    number: u64,
}

type Message = (Tag, Vec<u8>);

struct Expected {
    notice: Notice,
    offset: usize,
    bytes: Vec<u8>,
}

impl<B: Backend> Run<B> {
    fn new(seed: u64) -> Self {
        let mut cluster = Cluster::connected(SIZE);
        let kinds = cluster.kinds();
        let kind = kinds[seed as usize % kinds.len()];
        let sources: Vec<_> = (0..SIZE).map(|at| cluster.memory(at, kind, SIZE * SLOTS * SLOT)).collect();
        let targets: Vec<_> = (0..SIZE).map(|at| cluster.memory(at, kind, SIZE * SLOTS * SLOT)).collect();
        let mut remotes = BTreeMap::new();
        for origin in 0..SIZE {
            for target in (0..SIZE).filter(|target| *target != origin) {
                remotes.insert((origin, target), cluster.share(target, &targets[target], origin));
            }
        }
        let compared = std::array::from_fn(|at| cluster.seen(at).len());
        Self {
            cluster,
            random: Random::new(seed),
            sources,
            targets,
            remotes,
            expected: vec![vec![0; SIZE * SLOTS * SLOT]; SIZE],
            messages: BTreeMap::new(),
            puts: BTreeMap::new(),
            compared,
            number: seed * 1_000_000,
        }
    }

    fn run(mut self) {
        let mut posted = 0;
        while posted < OPERATIONS {
            let from = self.random.below(SIZE);
            let to = (from + 1 + self.random.below(SIZE - 1)) % SIZE;
            posted +=
                usize::from(if self.random.below(3) == 0 { self.send(from, to) } else { self.put(from, to) });
            for at in 0..SIZE {
                let is_driven = self.random.below(4) > 0;
                self.cluster.drive(at, is_driven);
            }
            for _ in 0..self.random.below(3) {
                self.cluster.turn();
            }
            self.compare();
            self.cluster.advance();
        }
        (0..SIZE).for_each(|at| self.cluster.drive(at, true));
        self.cluster.quiet();
        self.compare();
        assert!(self.messages.values().all(VecDeque::is_empty), "lost messages: {:?}", self.messages);
        assert!(self.puts.is_empty(), "lost puts: {:?}", self.puts.keys());
        for at in 0..SIZE {
            assert_eq!(self.cluster.pending(at), 0);
            assert_eq!(
                self.cluster.count(at, |seen| matches!(seen, Seen::Failed(..) | Seen::PeerLost(..))),
                0
            );
            assert_same(&self.targets[at].read_all(), &self.expected[at], &format!("the memory of {at}"));
        }
    }

    fn send(&mut self, from: usize, to: usize) -> bool {
        self.number += 1;
        let (tag, bytes) = (Tag(self.number as u32), pattern(self.number, self.random.below(2000)));
        let posted = self.cluster.transport(from).send(peer(to), tag, &bytes).expect("send");
        if posted == Posted::Queued {
            self.messages.entry((from, to)).or_default().push_back((tag, bytes));
        }
        posted == Posted::Queued
    }

    fn put(&mut self, from: usize, to: usize) -> bool {
        let slot = self.random.below(SLOTS);
        if self.puts.contains_key(&(from, to, slot)) {
            return false;
        }
        self.number += 1;
        let len = self.random.below(SLOT + 1);
        let within = self.random.below(SLOT - len + 1);
        // The same place in the source as in the target's memory, counted by target and by origin.
        let source_offset = (to * SLOTS + slot) * SLOT + within;
        let target_offset = (from * SLOTS + slot) * SLOT + within;
        let bytes = pattern(self.number, len);
        self.sources[from].write(source_offset, &bytes);
        // The slot has a new generation each time, as a careful target would number it.
        let notice = Notice::new(slot as u16, self.number as u16);
        let source: Region = self.sources[from].region;
        let put = Put {
            notice: Some(notice),
            ..plain(
                self.cluster.token(),
                len,
                (source, source_offset),
                (self.remotes[&(from, to)], target_offset),
            )
        };
        let posted = self.cluster.try_put(from, &put).expect("put");
        if posted == Posted::Queued {
            self.puts.insert((from, to, slot), Expected { notice, offset: target_offset, bytes });
        }
        posted == Posted::Queued
    }

    /// Holds what was seen since the last time against the model.
    fn compare(&mut self) {
        for at in 0..SIZE {
            let seen = self.cluster.seen(at)[self.compared[at]..].to_vec();
            self.compared[at] += seen.len();
            for seen in seen {
                match seen {
                    Seen::Received(from, tag, bytes) => {
                        let from = from.index() as usize;
                        let expected = self.messages.get_mut(&(from, at)).and_then(VecDeque::pop_front);
                        assert!(
                            expected == Some((tag, bytes)),
                            "a wrong message from {from} to {at}: {tag:?}"
                        );
                    }
                    Seen::Notified(from, notice) => self.arrive(from.index() as usize, at, notice),
                    Seen::Done(_) => {}
                    other => panic!("unexpected at {at}: {other:?}"),
                }
            }
        }
    }

    /// A notice may be repeated; the first one says that the bytes are there.
    fn arrive(&mut self, from: usize, at: usize, notice: Notice) {
        let slot = (from, at, usize::from(notice.slot()));
        if self.puts.get(&slot).is_none_or(|expected| expected.notice != notice) {
            return;
        }
        if let Some(Expected { offset, bytes, .. }) = self.puts.remove(&slot) {
            assert_same(
                &self.targets[at].read(offset, bytes.len()),
                &bytes,
                &format!("a put from {from} to {at}"),
            );
            self.expected[at][offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    }
}
