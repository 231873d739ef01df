//! Connecting the processes of a job: everybody tells its addresses, then each pair takes the first transport on
//! which it can be joined.
//!
//! Whether two processes share a host is decided by trying, never by name: shared memory is offered to everybody, and
//! a pair uses it if both sides could begin. A fabric is used by a pair that could connect on it. Ranks may lack a
//! transport that others have: a card, the library. Pairs of which one lacks it use the next.

use crate::driver::{Pace, Route, Wires};
use crate::engine::Process;
use crate::job::Place;
use crate::{Error, Rank, Result};
use gradwire_schema::control::{Hello, TransportAddress};
use gradwire_transport::{Activity, Address, Capabilities, Event, EventRef, Events, Linger, Peer, Transport};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who we are.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) rank: Rank,
    pub(crate) size: usize,
    /// Distinguishes this incarnation of the job from others.
    pub(crate) job: String,
    /// The normal form of the tuning, which all ranks must share or they would choose different algorithms.
    pub(crate) tuning: String,
    pub(crate) host: String,
    /// The processors this process may run on, as bits.
    pub(crate) processors: Vec<u64>,
}

/// The connected job.
#[derive(Debug)]
pub(crate) struct Wired {
    pub(crate) wires: Wires,
    pub(crate) places: Vec<Place>,
    pub(crate) crowded: bool,
}

/// Gives bytes to all ranks and returns theirs.
pub(crate) type Exchange<'a> = dyn FnMut(&[u8]) -> Result<Vec<Vec<u8>>> + 'a;

/// Connects to all other processes. `transports` in the order of preference; all ranks list the same ones.
pub(crate) fn connect(
    identity: &Identity,
    transports: Vec<Box<dyn Transport>>,
    exchange: &mut Exchange<'_>,
    deadline: Instant,
) -> Result<Wired> {
    let Identity { rank: own, size, .. } = *identity;
    let hellos = introduce(identity, &transports, exchange)?;
    let names = rounds(&hellos, own)?;
    let mut wiring = Wiring {
        wires: Wires::new(size),
        hellos,
        own,
        deadline,
        connected: HashSet::new(),
        lost: HashMap::new(),
    };
    let mut open: Vec<Rank> = (0..size).filter(|rank| *rank != own).collect();
    let mut transports: VecDeque<Box<dyn Transport>> = transports.into();
    let (mut shared, mut tried) = (vec![false; size], false);
    for (round, name) in names.iter().enumerate() {
        let is_last = round + 1 == names.len();
        // Others may have a transport that this rank lacks.
        let is_ours = transports.front().is_some_and(|transport| transport.name() == name);
        let transport = if is_ours { transports.pop_front() } else { None };
        let is_mapped =
            transport.as_ref().is_some_and(|own| own.capabilities().contains(Capabilities::DIRECT));
        let carrier = transport.map(|transport| wiring.wires.add(transport));
        let mut begun: BTreeMap<Rank, Peer> = BTreeMap::new();
        for rank in carrier.is_some().then_some(&open).into_iter().flatten() {
            begun.extend(carrier.and_then(|carrier| Some((*rank, wiring.begin(carrier, *rank, name).ok()?))));
        }
        if is_last {
            if let Some(rank) = open.iter().find(|rank| !begun.contains_key(rank)) {
                return Err(wiring.unreachable(*rank, name, "its address cannot be used from here"));
            }
        } else {
            wiring.keep_common(carrier, &mut begun, exchange)?;
            // A mapping that could begin on both sides works. A fabric has to be tried.
            if !is_mapped {
                wiring.try_out(carrier, &mut begun, name)?;
            }
            wiring.keep_common(carrier, &mut begun, exchange)?;
        }
        open.retain(|rank| !begun.contains_key(rank));
        tried |= is_mapped;
        for (rank, peer) in begun {
            let Some(carrier) = carrier else { continue };
            wiring.wires.set_route(rank as Process, Some(Route { carrier, peer }));
            shared[rank] |= is_mapped;
        }
    }
    wiring.wait_for_all()?;
    // Nobody goes on before everybody is connected: a message to a process that still connects would be early.
    // And all choose algorithms by the same costs, or they would choose different ones.
    let pace = agreed(&exchange(&wiring.wires.slowest().encode())?)?;
    wiring.wires.set_pace(pace);
    Ok(wiring.finish(&shared, tried))
}

/// The pace of the slowest of all processes.
fn agreed(told: &[Vec<u8>]) -> Result<Pace> {
    let mut all = Vec::with_capacity(told.len());
    for (rank, bytes) in told.iter().enumerate() {
        let broken = || {
            bootstrap(format!(
                "rank {rank} tells of transports that cannot be: start the same program everywhere"
            ))
        };
        all.push(Pace::decode(bytes).ok_or_else(broken)?);
    }
    all.into_iter().reduce(Pace::slower).ok_or_else(|| bootstrap("nobody has told of transports".to_owned()))
}

/// The transports to try in turn: those of the rank that has most. Each rank may lack some, but none may have others.
fn rounds(hellos: &[Hello], own: Rank) -> Result<Vec<String>> {
    let offered =
        |hello: &Hello| hello.addresses.iter().map(|a| a.transport.clone()).collect::<Vec<String>>();
    let most = hellos.iter().rev().map(offered).max_by_key(Vec::len).unwrap_or_default();
    for (rank, hello) in hellos.iter().enumerate() {
        let mut rest = most.iter();
        if !offered(hello).iter().all(|name| rest.any(|other| other == name)) {
            return Err(bootstrap(format!(
                "rank {rank} on {} offers the transports {:?}, this rank {:?}: set GRADWIRE_TRANSPORT alike everywhere",
                hello.host,
                offered(hello),
                offered(&hellos[own])
            )));
        }
    }
    Ok(most)
}

/// Everybody's hello, checked against ours.
fn introduce(
    identity: &Identity,
    transports: &[Box<dyn Transport>],
    exchange: &mut Exchange<'_>,
) -> Result<Vec<Hello>> {
    let addresses = transports.iter().map(|transport| TransportAddress {
        transport: transport.name().to_owned(),
        address: transport.address().as_bytes().to_vec(),
    });
    let own = Hello {
        job: format!("{} {}", identity.job, identity.tuning),
        proof: Vec::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rank: identity.rank as u32,
        size: identity.size as u32,
        epoch: 0,
        host: identity.host.clone(),
        pid: std::process::id(),
        processors: identity.processors.clone(),
        addresses: addresses.collect(),
    };
    let mut hellos = Vec::with_capacity(identity.size);
    for (rank, bytes) in exchange(&own.encode())?.iter().enumerate() {
        let hello = Hello::decode(bytes)
            .map_err(|error| bootstrap(format!("the introduction of rank {rank} cannot be read: {error}")))?;
        if (hello.rank, hello.size) != (rank as u32, own.size) {
            return Err(bootstrap(format!(
                "rank {rank} believes to be rank {} of {}, this is rank {} of {}: start all ranks with the same size",
                hello.rank, hello.size, own.rank, own.size
            )));
        }
        if hello.job != own.job {
            return Err(bootstrap(format!(
                "rank {rank} on {} belongs to another job or is tuned differently ({} instead of {}): \
                 set GRADWIRE_TUNE alike everywhere",
                hello.host, hello.job, own.job
            )));
        }
        if hello.version != own.version {
            return Err(bootstrap(format!(
                "rank {rank} on {} runs version {}, this rank {}: start the same program everywhere",
                hello.host, hello.version, own.version
            )));
        }
        hellos.push(hello);
    }
    Ok(hellos)
}

struct Wiring {
    wires: Wires,
    hellos: Vec<Hello>,
    own: Rank,
    deadline: Instant,
    connected: HashSet<(usize, Peer)>,
    lost: HashMap<(usize, Peer), String>,
}

impl Wiring {
    /// Begins a connection on a transport.
    fn begin(&mut self, carrier: usize, rank: Rank, name: &str) -> Result<Peer> {
        let refused = || bootstrap(format!("rank {rank} has no usable address"));
        let mut addresses = self.hellos[rank].addresses.iter();
        let bytes = &addresses.find(|address| address.transport == name).ok_or_else(refused)?.address;
        let address = Address::from_bytes(bytes).ok_or_else(refused)?;
        let peer = self.wires.name(carrier, rank as Process);
        self.wires.carriers[carrier].transport.connect(peer, &address).map_err(|error| {
            self.unreachable(rank, self.wires.carriers[carrier].transport.name(), &error.to_string())
        })?;
        Ok(peer)
    }

    /// Keeps the connections that both sides have.
    fn keep_common(
        &mut self,
        carrier: Option<usize>,
        begun: &mut BTreeMap<Rank, Peer>,
        exchange: &mut Exchange<'_>,
    ) -> Result<()> {
        let bits: Vec<u8> = (0..self.hellos.len()).map(|rank| u8::from(begun.contains_key(&rank))).collect();
        let all = exchange(&bits)?;
        let own = self.own;
        let is_common = |rank: &Rank| all.get(*rank).and_then(|bits| bits.get(own)) == Some(&1);
        for (_, peer) in begun.iter().filter(|(rank, _)| !is_common(rank)) {
            if let Some(carrier) = carrier {
                self.wires.carriers[carrier].transport.disconnect(*peer, Linger::Drop);
            }
        }
        begun.retain(|rank, _| is_common(rank));
        Ok(())
    }

    /// Waits for what has begun on a carrier, and drops what does not come about.
    fn try_out(
        &mut self,
        carrier: Option<usize>,
        begun: &mut BTreeMap<Rank, Peer>,
        name: &str,
    ) -> Result<()> {
        let Some(carrier) = carrier else { return Ok(()) };
        let mut events = Events::new();
        loop {
            let activity = self.progress(&mut events)?;
            let is_decided = |peer: &Peer| {
                self.connected.contains(&(carrier, *peer)) || self.lost.contains_key(&(carrier, *peer))
            };
            let has_left = !self.wires.carriers[carrier].transport.has_output();
            if Instant::now() > self.deadline || has_left && begun.values().all(is_decided) {
                break;
            }
            if activity == Activity::Idle {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        begun.retain(|rank, peer| {
            let reason = self.lost.get(&(carrier, *peer)).map_or("it does not answer", String::as_str);
            let is_connected =
                self.connected.contains(&(carrier, *peer)) && !self.lost.contains_key(&(carrier, *peer));
            if !is_connected {
                let host = &*self.hellos[*rank].host;
                tracing::warn!(rank, host, reason, "not reached over {name}: the next transport is tried");
                self.wires.carriers[carrier].transport.disconnect(*peer, Linger::Drop);
            }
            is_connected
        });
        Ok(())
    }

    /// Drives all transports until every route is connected.
    fn wait_for_all(&mut self) -> Result<()> {
        let mut events = Events::new();
        loop {
            let activity = self.progress(&mut events)?;
            let others = (0..self.hellos.len()).filter(|rank| *rank != self.own);
            let routes: Vec<(Rank, Route)> =
                others.filter_map(|rank| Some((rank, self.wires.route(rank as Process)?))).collect();
            let mut missing =
                routes.iter().filter(|(_, route)| !self.connected.contains(&(route.carrier, route.peer)));
            let Some((rank, _)) = missing.next() else { return Ok(()) };
            for (rank, route) in &routes {
                if let Some(reason) = self.lost.get(&(route.carrier, route.peer)) {
                    let name = self.wires.name_of(*rank as Process);
                    return Err(self.unreachable(*rank, name, reason));
                }
            }
            if Instant::now() > self.deadline {
                let name = self.wires.name_of(*rank as Process);
                return Err(self.unreachable(*rank, name, "it does not answer in time"));
            }
            if activity == Activity::Idle {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }

    fn progress(&mut self, events: &mut Events) -> Result<Activity> {
        let mut activity = Activity::Idle;
        for (index, carrier) in self.wires.carriers.iter_mut().enumerate() {
            events.clear();
            let moved = carrier.transport.progress(Instant::now(), events);
            activity = activity.or(moved.map_err(|error| bootstrap(format!("a transport broke: {error}")))?);
            for event in events.iter() {
                match event {
                    EventRef::Other(Event::Connected(peer)) => {
                        self.connected.insert((index, *peer));
                    }
                    EventRef::Other(Event::PeerLost(peer, reason)) => {
                        self.lost.insert((index, *peer), reason.to_string());
                    }
                    _ => {}
                }
            }
        }
        Ok(activity)
    }

    fn unreachable(&self, rank: Rank, transport: &str, reason: &str) -> Error {
        bootstrap(format!(
            "rank {rank} on {} cannot be reached over {transport}: {reason}; \
             check GRADWIRE_INTERFACE, GRADWIRE_PORT_RANGE and the firewall",
            self.hellos[rank].host
        ))
    }

    fn finish(self, shared: &[bool], tried: bool) -> Wired {
        let own = self.own;
        let hosts: Vec<&str> = self.hellos.iter().map(|hello| hello.host.as_str()).collect();
        let nodes = nodes(own, &hosts, tried.then_some(shared));
        let masks: Vec<&[u64]> = (0..self.hellos.len())
            .filter(|rank| nodes[*rank] == nodes[own])
            .map(|rank| self.hellos[rank].processors.as_slice())
            .collect();
        let crowded = is_crowded(&masks);
        let places = self
            .hellos
            .iter()
            .zip(nodes)
            .map(|(hello, node)| Place { host: Arc::from(hello.host.as_str()), node })
            .collect();
        Wired { wires: self.wires, places, crowded }
    }
}

/// Which ranks run on one host: equal numbers. Those that share memory with this one are of its host, if that was tried;
/// of the others only names are known.
fn nodes(own: Rank, hosts: &[&str], shared: Option<&[bool]>) -> Vec<usize> {
    let here = |rank: Rank| shared.is_some_and(|shared| rank == own || shared[rank]);
    let together = |a: Rank, b: Rank| here(a) == here(b) && (here(a) || hosts[a] == hosts[b]);
    (0..hosts.len()).map(|rank| (0..rank).find(|other| together(*other, rank)).unwrap_or(rank)).collect()
}

/// Whether processes that may run on these processors share some. A launcher may have bound each to one, so each
/// mask counts, and all together.
fn is_crowded(masks: &[&[u64]]) -> bool {
    let words = masks.iter().map(|mask| mask.len()).max().unwrap_or(0);
    let word = |mask: &[u64], index: usize| mask.get(index).copied().unwrap_or(0);
    let all: Vec<u64> =
        (0..words).map(|index| masks.iter().fold(0, |all, mask| all | word(mask, index))).collect();
    masks.iter().copied().chain([all.as_slice()]).any(|mask| {
        let processors: u32 = mask.iter().map(|word| word.count_ones()).sum();
        let inside =
            masks.iter().filter(|other| (0..words).all(|index| word(other, index) & !word(mask, index) == 0));
        processors > 0 && inside.count() > processors as usize
    })
}

fn bootstrap(text: String) -> Error {
    Error::Bootstrap(text.into())
}

#[cfg(test)]
mod tests {
    use super::{agreed, is_crowded, nodes};
    use crate::driver::Pace;
    use std::time::Duration;

    #[test]
    fn all_ranks_compute_with_what_the_slowest_has() {
        let pace = |microseconds, bandwidth| Pace { latency: Duration::from_micros(microseconds), bandwidth };
        let told = |paces: &[Pace]| paces.iter().map(|pace| pace.encode().to_vec()).collect::<Vec<_>>();
        // One has a slow transport that the others lack, another a narrow one.
        let all = told(&[pace(15, 2.5e9), pace(20, 4e9), pace(15, 2.0e9)]);
        assert_eq!(agreed(&all).unwrap(), pace(20, 2.0e9));
        for wrong in [vec![], vec![0; 15], vec![0; 16], vec![0xff; 16], vec![0; 17]] {
            let mut all = all.clone();
            all[1] = wrong;
            assert!(agreed(&all).unwrap_err().to_string().contains("rank 1"));
        }
    }

    #[test]
    fn shared_memory_tells_hosts_apart_and_names_where_nobody_tried() {
        let hosts = ["a", "b", "a", "b"];
        for own in 0..4 {
            assert_eq!(nodes(own, &hosts, None), [0, 1, 0, 1]);
        }
        assert_eq!(nodes(2, &hosts, Some(&[true, false, false, false])), [0, 1, 0, 1]);
        // Two namespaces of one name.
        assert_eq!(nodes(2, &["a"; 4], Some(&[false, false, false, true])), [0, 0, 2, 2]);
        assert_eq!(nodes(2, &["a"; 4], Some(&[false; 4])), [0, 0, 2, 0]);
    }

    #[test]
    fn ranks_share_cores_only_where_there_are_too_few() {
        assert!(!is_crowded(&[&[0b11], &[0b11]]));
        assert!(is_crowded(&[&[0b11], &[0b11], &[0b11]]));
        assert!(!is_crowded(&[&[0b01], &[0b10]]));
        assert!(is_crowded(&[&[0b01], &[0b01]]));
        assert!(is_crowded(&[&[0b01], &[0b01], &[0b1110]]));
        assert!(!is_crowded(&[&[0, 1], &[1]]));
    }
}
