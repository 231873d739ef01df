//! Engines whose messages are letters that a test hands over one by one.

mod leaving;
mod messages;
mod windows;

use super::{
    Begin, Calls, Contribution, Engine, GroupId, Key, Outcome, Pattern, Payload, Port, Process, Sent,
    Staging, Work,
};
use crate::buffer::{Private, Span};
use crate::{Error, Rank};
use gradwire_schema::{CallSignature, Collective, FrameHeader};
use gradwire_transport::{ImportError, Put, Region, RegionKey, RegisterError, RemoteRegion};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

const GROUP: GroupId = GroupId(7);
/// What lies in memory of others.
const THERE: u8 = 42;
/// An address at which nothing does.
const NOWHERE: u64 = 0;

/// Takes every message, and knows no memory but what others let it read: the bytes there are [`THERE`].
#[derive(Debug, Default)]
struct Counter(Vec<(Process, Vec<u8>)>);

impl Port for Counter {
    fn message_limit(&self, _: Process) -> usize {
        4096
    }

    fn eager_limit(&self, _: Process) -> usize {
        4096 - FrameHeader::LEN
    }

    fn send(&mut self, peer: Process, bytes: &[u8]) -> Sent {
        self.0.push((peer, bytes.to_vec()));
        Sent::Taken
    }

    fn register(&mut self, _: Process, _: Span) -> Result<Region, RegisterError> {
        Err(RegisterError::Unsupported)
    }

    fn export(&mut self, _: Process, _: Region) -> Option<RegionKey> {
        None
    }

    fn deregister(&mut self, _: Process, _: Region) {}

    fn lend(&mut self, _: Process, _: usize) -> Result<Staging, RegisterError> {
        Err(RegisterError::Unsupported)
    }

    fn reclaim(&mut self, _: Process, _: Staging, _: bool) {}

    fn import(&mut self, _: Process, _: &RegionKey) -> Result<RemoteRegion, ImportError> {
        Err(ImportError::NotConnected)
    }

    fn release(&mut self, _: Process, _: RemoteRegion) {}

    fn can_read(&self, _: Process) -> bool {
        true
    }

    fn read(&mut self, _: Process, address: u64, into: Span) -> bool {
        into.write(&vec![THERE; into.len()]);
        address != NOWHERE
    }

    fn put(&mut self, _: Process, _: &Put) -> Sent {
        Sent::Taken
    }

    fn expel(&mut self, _: Process) {}
}

/// One communicator over some processes, in which rank `r` is process `r`.
struct Town {
    engines: Vec<Engine>,
    calls: Vec<Arc<Calls>>,
    /// By sender and receiver, oldest first.
    letters: HashMap<(usize, usize), VecDeque<Vec<u8>>>,
    results: HashMap<(usize, Key), Result<Outcome, Error>>,
    now: Instant,
}

impl Town {
    fn new(size: usize) -> Self {
        let now = Instant::now();
        let hosts: Vec<Arc<str>> = (0..size).map(|process| format!("host {process}").into()).collect();
        let engines = (0..size).map(|own| Engine::new(own as Process, hosts.clone(), now)).collect();
        let calls = (0..size).map(|_| Arc::new(Calls::default())).collect();
        let mut town = Self { engines, calls, letters: HashMap::new(), results: HashMap::new(), now };
        for rank in 0..size {
            let (members, calls) = ((0..size as Process).collect(), town.calls[rank].clone());
            town.at(rank, |engine, port| engine.add_group(GROUP, members, rank, calls, port));
        }
        town
    }

    /// Does something at one engine, and collects what it sends and what has ended.
    fn at<R>(&mut self, rank: Rank, act: impl FnOnce(&mut Engine, &mut dyn Port) -> R) -> R {
        let mut port = Counter::default();
        let engine = &mut self.engines[rank];
        engine.set_now(self.now);
        let result = act(engine, &mut port);
        engine.advance_all(&mut port);
        self.results.extend(engine.finished().map(|(key, result)| ((rank, key), result)));
        for (to, bytes) in port.0 {
            self.letters.entry((rank, to as usize)).or_default().push_back(bytes);
        }
        result
    }

    /// The next collective of a rank.
    fn call(&mut self, rank: Rank) -> Key {
        let sequence = self.calls[rank].next();
        let work = Work::Exchange { own: vec![rank as u8], contribution: Contribution::Each(1) };
        let begin = self.begin(Collective::Barrier, sequence);
        self.at(rank, |engine, port| engine.begin(begin, work, port))
    }

    /// The next collective of all ranks.
    fn call_all(&mut self) -> Vec<Key> {
        (0..self.engines.len()).map(|rank| self.call(rank)).collect()
    }

    fn message(&mut self, rank: Rank, work: Work) -> Key {
        let begin = self.begin(Collective::PointToPoint, 0);
        self.at(rank, |engine, port| engine.begin(begin, work, port))
    }

    fn begin(&self, collective: Collective, sequence: u64) -> Begin {
        let signature = CallSignature::new(collective);
        let timeout = Some(Duration::from_secs(60));
        Begin { group: GROUP, sequence, signature, started: self.now, timeout }
    }

    /// Hands over the oldest letter. Whether there was one.
    fn deliver(&mut self, from: Rank, to: Rank) -> bool {
        let letter = self.letters.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        letter
            .inspect(|bytes| self.at(to, |engine, port| engine.receive(from as Process, bytes, port)))
            .is_some()
    }

    /// Hands over all letters between these ranks, and those they lead to.
    fn deliver_among(&mut self, ranks: &[Rank]) {
        let pairs = || ranks.iter().flat_map(|from| ranks.iter().map(|to| (*from, *to)));
        while pairs().any(|(from, to)| self.deliver(from, to)) {}
    }

    /// Hands over what a rank has sent to some, then hangs up.
    fn end(&mut self, rank: Rank, witnesses: &[Rank]) {
        for witness in witnesses {
            while self.deliver(rank, *witness) {}
            self.hang_up(rank, *witness);
        }
    }

    fn hang_up(&mut self, rank: Rank, witness: Rank) {
        self.at(witness, |engine, port| engine.lost(rank as Process, "hung up".into(), port));
    }

    fn goodbye(&mut self, rank: Rank) {
        self.at(rank, Engine::goodbye);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        (0..self.engines.len()).for_each(|rank| self.at(rank, |engine, port| engine.tick(now, port)));
    }

    /// The result of an operation that has ended.
    fn result(&mut self, rank: Rank, key: Key) -> Result<Outcome, Error> {
        self.results.remove(&(rank, key)).unwrap_or_else(|| panic!("the call of rank {rank} goes on"))
    }

    fn goes_on(&self, rank: Rank, key: Key) -> bool {
        !self.results.contains_key(&(rank, key))
    }

    #[track_caller]
    fn assert_lost(&mut self, rank: Rank, key: Key, expected: Rank) {
        let error = self.result(rank, key).unwrap_err();
        assert!(matches!(error, Error::PeerLost { rank, .. } if rank == expected), "rank {rank}: {error}");
    }

    #[track_caller]
    fn assert_done(&mut self, rank: Rank, key: Key) {
        let size = self.engines.len() as u8;
        match self.result(rank, key) {
            Ok(Outcome::Gathered(bytes)) => assert_eq!(bytes, (0..size).collect::<Vec<u8>>()),
            other => panic!("rank {rank}: {other:?}"),
        }
    }
}
