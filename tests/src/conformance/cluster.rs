//! Some endpoints, driven in turn.

use super::node::Node;
use super::{Backend, MemoryKind, Rest, Seen, TestMemory};
use gradwire_transport::{
    Activity, Atomic, Capabilities, Get, ImportError, Limits, Linger, Notice, Peer, Posted, Put, RegionKey,
    RemoteRegion, Tag, Token, Transport, TransportError,
};
use std::io::Write;
use std::time::{Duration, Instant};

/// No test waits longer for anything. Generous: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nor does it call `progress` more often.
const TURNS: u64 = 20_000_000;

/// The endpoints of one job. Endpoint `i` calls endpoint `j` [`peer(j)`](peer), unless a test connects otherwise.
#[derive(Debug)]
pub struct Cluster<B> {
    /// What makes endpoints, and kills them.
    pub backend: B,
    /// The time to tell instead of the backend's.
    pub frozen: Option<Instant>,
    nodes: Vec<Node>,
    tokens: u64,
    turns: u64,
    /// Something was asked for that no `progress` has seen yet.
    has_posted: bool,
}

/// The name under which endpoints know endpoint `index`.
#[must_use]
pub const fn peer(index: usize) -> Peer {
    Peer::new(index as u32, 0)
}

/// Building it.
impl<B: Backend> Cluster<B> {
    /// `size` endpoints that do not know each other.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let backend = B::start();
        let mut cluster =
            Self { backend, frozen: None, nodes: Vec::new(), tokens: 0, turns: 0, has_posted: false };
        for _ in 0..size {
            cluster.add();
        }
        cluster
    }

    /// `size` endpoints, each connected to each other.
    #[must_use]
    pub fn connected(size: usize) -> Self {
        let mut cluster = Self::new(size);
        for from in 0..size {
            (0..size).filter(|to| *to != from).for_each(|to| cluster.connect(from, to));
        }
        cluster.until("all connect", |cluster| {
            (0..size).all(|at| cluster.count(at, |seen| matches!(seen, Seen::Connected(_))) == size - 1)
        });
        cluster
    }

    /// As `connected`; `None`, and a line on the standard error, where the transport lacks what `test` needs.
    #[must_use]
    pub fn with(test: &str, needs: Capabilities, size: usize) -> Option<Self> {
        let mut cluster = Self::connected(size);
        let has = cluster.transport(0).capabilities();
        if has.contains(needs) {
            return Some(cluster);
        }
        Self::skip(test, &format!("needs {needs:?}, has {has:?}"));
        None
    }

    /// Says that a test was not run, and why. Goes past the capture of output, to be seen in any case.
    pub fn skip(test: &str, why: &str) {
        let _ = writeln!(std::io::stderr(), "skipped {}::{test}: {why}", B::NAME);
    }

    /// One more endpoint. Returns its index.
    pub fn add(&mut self) -> usize {
        let transport = self.backend.endpoint();
        self.adopt(transport)
    }

    /// An endpoint from elsewhere. Returns its index.
    pub fn adopt(&mut self, transport: Box<dyn Transport>) -> usize {
        self.nodes.push(Node::new(transport));
        self.nodes.len() - 1
    }

    /// Ends an endpoint as the death of its process would.
    pub fn kill(&mut self, index: usize) {
        let transport = self.take(index);
        self.backend.kill(transport);
    }

    /// Takes an endpoint out, for the test to drive it elsewhere.
    pub fn take(&mut self, index: usize) -> Box<dyn Transport> {
        self.nodes[index].transport.take().expect("an endpoint that lives")
    }

    /// Leaves an endpoint alone, or drives it again.
    pub fn drive(&mut self, index: usize, is_driven: bool) {
        self.nodes[index].is_driven = is_driven;
    }

    /// The transport itself.
    pub fn transport(&mut self, index: usize) -> &mut dyn Transport {
        self.has_posted = true;
        &mut **self.nodes[index].transport.as_mut().expect("an endpoint that lives")
    }

    /// What the transport takes.
    pub fn limits(&mut self) -> Limits {
        self.transport(0).limits().clone()
    }

    /// The kinds of memory that the transport lets peers reach. At least one.
    pub fn kinds(&mut self) -> Vec<MemoryKind> {
        let kinds = MemoryKind::reachable(self.transport(0));
        assert!(!kinds.is_empty(), "a transport that lets peers reach no memory at all");
        kinds
    }

    /// Each kind of memory for this side of a transfer beside each that the other side may have, numbered.
    pub fn pairs(&mut self) -> Vec<(u64, MemoryKind, MemoryKind)> {
        let (here, there) = (MemoryKind::of(self.transport(0)), self.kinds());
        let pairs = here.iter().flat_map(|here| there.iter().map(|there| (*here, *there)));
        (1..).zip(pairs).map(|(number, (here, there))| (number, here, there)).collect()
    }
}

/// Asking for things.
impl<B: Backend> Cluster<B> {
    /// One side of a connection.
    pub fn connect(&mut self, from: usize, to: usize) {
        self.connect_as(from, to, peer(to));
    }

    /// One side of a connection, under a name of the test's choice.
    pub fn connect_as(&mut self, from: usize, to: usize, name: Peer) {
        let address = self.transport(to).address();
        self.transport(from).connect(name, &address).expect("connect");
    }

    /// Ends a connection; from now on nothing may be heard of it.
    pub fn disconnect(&mut self, index: usize, name: Peer, linger: Linger) {
        self.transport(index).disconnect(name, linger);
        self.nodes[index].close(name);
    }

    /// Memory of an endpoint.
    pub fn memory(&mut self, index: usize, kind: MemoryKind, len: usize) -> TestMemory {
        TestMemory::new(self.transport(index), kind, len)
    }

    /// Memory of `owner`, as `user` may reach it.
    pub fn share(&mut self, owner: usize, memory: &TestMemory, user: usize) -> RemoteRegion {
        let key = self.transport(owner).export(memory.region).expect("a key");
        self.import(user, peer(owner), &key)
    }

    /// Imports a key that is good, as soon as that is possible.
    pub fn import(&mut self, index: usize, owner: Peer, key: &RegionKey) -> RemoteRegion {
        let mut remote = None;
        self.until("a key is accepted", |cluster| {
            match cluster.try_import(index, owner, key) {
                Ok(region) => remote = Some(region),
                Err(ImportError::NotYet) => {}
                Err(error) => panic!("a good key was refused: {error}"),
            }
            remote.is_some()
        });
        remote.expect("accepted")
    }

    /// Imports a key.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub fn try_import(
        &mut self,
        index: usize,
        owner: Peer,
        key: &RegionKey,
    ) -> Result<RemoteRegion, ImportError> {
        let region = self.transport(index).import(owner, key)?;
        let reused = self.nodes[index].owners.insert(region, owner);
        assert_eq!(reused, None, "a name of a remote region was used twice");
        Ok(region)
    }

    /// A token that was not used before.
    pub fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// Posts a put.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub fn try_put(&mut self, index: usize, put: &Put) -> Result<Posted, TransportError> {
        let posted = self.transport(index).put(put)?;
        self.track(index, posted, put.token, put.target);
        Ok(posted)
    }

    /// Posts a get.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub fn try_get(&mut self, index: usize, get: &Get) -> Result<Posted, TransportError> {
        let posted = self.transport(index).get(get)?;
        self.track(index, posted, get.token, get.source);
        Ok(posted)
    }

    /// Posts an atomic.
    ///
    /// # Errors
    ///
    /// Those of the transport.
    pub fn try_atomic(&mut self, index: usize, atomic: &Atomic) -> Result<Posted, TransportError> {
        let posted = self.transport(index).atomic(atomic)?;
        self.track(index, posted, atomic.token, atomic.target);
        Ok(posted)
    }

    /// Posts a put as soon as there is room.
    pub fn put(&mut self, index: usize, put: &Put) {
        self.when_room("a put is taken", |cluster| cluster.try_put(index, put));
    }

    /// Sends a message as soon as there is room.
    pub fn send(&mut self, index: usize, to: Peer, tag: Tag, bytes: &[u8]) {
        self.when_room("a message is taken", |cluster| cluster.transport(index).send(to, tag, bytes));
    }

    /// Posts something as soon as there is room.
    pub fn when_room(
        &mut self,
        what: &str,
        mut post: impl FnMut(&mut Self) -> Result<Posted, TransportError>,
    ) {
        self.until(what, |cluster| match post(cluster) {
            Ok(posted) => posted == Posted::Queued,
            Err(error) => panic!("{what}: {error}"),
        });
    }

    fn track(&mut self, index: usize, posted: Posted, token: Token, remote: RemoteRegion) {
        if posted == Posted::Queued {
            let node = &mut self.nodes[index];
            let owner = *node.owners.get(&remote).expect("a region that was imported");
            node.pending.insert(token, owner);
        }
    }
}

/// Looking at what came of it.
impl<B: Backend> Cluster<B> {
    /// All that an endpoint has seen.
    #[must_use]
    pub fn seen(&self, index: usize) -> &[Seen] {
        &self.nodes[index].seen
    }

    /// Forgets what an endpoint has seen.
    pub fn forget(&mut self, index: usize) {
        self.nodes[index].seen.clear();
    }

    /// How often an endpoint has seen what `is_it` says.
    pub fn count(&self, index: usize, is_it: impl Fn(&Seen) -> bool) -> usize {
        self.nodes[index].seen.iter().filter(|seen| is_it(seen)).count()
    }

    /// The messages that an endpoint got from `from`.
    #[must_use]
    pub fn messages(&self, index: usize, from: Peer) -> Vec<(Tag, &[u8])> {
        let received = self.nodes[index].seen.iter().filter_map(|seen| match seen {
            Seen::Received(peer, tag, bytes) if *peer == from => Some((*tag, bytes.as_slice())),
            _ => None,
        });
        received.collect()
    }

    /// Whether an endpoint knows a peer as connected, or did.
    #[must_use]
    pub fn is_connected(&self, index: usize, name: Peer) -> bool {
        self.count(index, |seen| *seen == Seen::Connected(name)) > 0
    }

    /// Whether a notice was raised.
    #[must_use]
    pub fn is_notified(&self, index: usize, from: Peer, notice: Notice) -> bool {
        self.count(index, |seen| *seen == Seen::Notified(from, notice)) > 0
    }

    /// Whether an endpoint was busy since the last time this was asked.
    pub fn take_busy(&mut self, index: usize) -> bool {
        std::mem::take(&mut self.nodes[index].was_busy)
    }

    /// Operations under way.
    #[must_use]
    pub fn pending(&self, index: usize) -> usize {
        self.nodes[index].pending.len()
    }

    /// Whether a peer was lost.
    #[must_use]
    pub fn has_lost(&self, index: usize, name: Peer) -> bool {
        self.count(index, |seen| matches!(seen, Seen::PeerLost(peer, _) if *peer == name)) > 0
    }
}

/// Driving it.
impl<B: Backend> Cluster<B> {
    /// Drives everybody until `is_true`.
    pub fn until(&mut self, what: &str, mut is_true: impl FnMut(&mut Self) -> bool) {
        let (start, first) = (Instant::now(), self.turns);
        let (mut rest, mut over) = (Rest::Woken, 0);
        while !is_true(self) {
            // What `is_true` asked for may be what keeps the next turn busy.
            let has_posted = std::mem::take(&mut self.has_posted);
            let activity = self.turn();
            let has_overslept = activity == Activity::Busy && rest == Rest::Undisturbed && !has_posted;
            rest = if activity == Activity::Busy { Rest::Woken } else { self.rest(Duration::from_secs(1)) };
            over = if rest == Rest::Over { over + 1 } else { 0 };
            let trouble = match () {
                () if has_overslept => "slept through something that happened, waiting for",
                () if over > 3 => "will never come",
                () if start.elapsed() > PATIENCE || self.turns - first > TURNS => "never came",
                () => continue,
            };
            panic!("{}: {trouble}: {what}\n{}", B::NAME, self.state());
        }
    }

    /// Drives everybody until nothing happens any more.
    pub fn quiet(&mut self) {
        let (start, mut undisturbed) = (Instant::now(), 0);
        while undisturbed < 3 {
            self.has_posted = false;
            let is_quiet =
                self.turn() == Activity::Idle && self.rest(Duration::from_millis(5)) != Rest::Woken;
            undisturbed = if is_quiet { undisturbed + 1 } else { 0 };
            assert!(start.elapsed() < PATIENCE, "{}: never becomes quiet\n{}", B::NAME, self.state());
        }
    }

    /// One call of `progress` for everybody.
    pub fn turn(&mut self) -> Activity {
        self.turns += 1;
        let now = self.frozen.unwrap_or_else(|| self.backend.now());
        let mut activity = Activity::Idle;
        for index in 0..self.nodes.len() {
            match self.nodes[index].turn(now) {
                Ok(one) => activity = activity.or(one),
                Err(broken) => panic!("{}: endpoint {index}: {broken}\n{}", B::NAME, self.state()),
            }
        }
        activity
    }

    /// So many turns, with a little time between them.
    pub fn turns(&mut self, count: u64) {
        for _ in 0..count {
            self.turn();
            self.advance();
        }
    }

    /// Lets a little time pass, for tests that call [`turn`](Self::turn) themselves.
    pub fn advance(&mut self) {
        self.rest(Duration::from_millis(1));
    }

    fn rest(&mut self, limit: Duration) -> Rest {
        let driven = self.nodes.iter_mut().filter(|node| node.is_driven);
        let mut endpoints = Vec::new();
        for transport in driven.filter_map(|node| node.transport.as_mut()) {
            endpoints.push(&mut **transport as &mut dyn Transport);
        }
        self.backend.rest(&mut endpoints, limit)
    }

    /// For the reader of a failed test.
    fn state(&self) -> String {
        let mut state = format!("after {} turns", self.turns);
        for (index, node) in self.nodes.iter().enumerate() {
            let last = &node.seen[node.seen.len().saturating_sub(12)..];
            let (last, transport) = (format!("{last:?}"), format!("{:?}", node.transport));
            state += &format!(
                "\nendpoint {index}: {} under way, {} events, the last ones: {last:.2000}\n  {transport:.4000}",
                node.pending.len(),
                node.seen.len(),
            );
        }
        state
    }
}
