//! A parameter server: some ranks keep the parameters of a model, the others push gradients to them and pull parameters from
//! them, one-sided.
//!
//! The parameters are cut into one shard for each server. A server has a slot for each worker behind its shard. A worker puts its
//! gradient into its own slot and raises a notice behind it; the owner folds slots into the parameters. So no element is changed by two
//! at a time, no sum needs atomic floats, and what a worker has pushed is complete or does not count.
//!
//! Counted in notices: at a server, that a worker has pushed (dense or sparse) or has come to its end; at a worker, that its slot on a
//! server is free again, how far that server's clock has come, and the server's last word.
#![forbid(unsafe_code)]

mod server;
mod worker;

pub use server::{Push, Served, Server};
pub use worker::Worker;

use crate::partition::partition;
use crate::{Arithmetic, Communicator, Error, Rank, Result, Window};
use std::ops::Range;
use std::time::Duration;

/// What a parameter server is to be: the same on all ranks.
///
/// ```no_run
/// # fn main() -> gradwire::Result<()> {
/// use gradwire::parameters::{Parameters, Role};
/// let comm = gradwire::init()?;
/// match Parameters::new(1_000_000).open::<f32>(&comm)? {
///     Role::Server(server) => {
///         let mut shard = vec![0.0; server.shard().len()];
///         server.serve(&mut shard, |parameters, push| {
///             let step = 0.1 / push.workers as f32;
///             parameters.iter_mut().zip(push.gradient).for_each(|(value, slope)| *value -= step * slope);
///         })?;
///     }
///     Role::Worker(mut worker) => {
///         let mut parameters = vec![0.0; 1_000_000];
///         for _ in 0..10 {
///             worker.pull(&mut parameters)?;
///             let gradient: Vec<f32> = parameters.iter().map(|value| value - 1.0).collect();
///             worker.push(&gradient)?;
///         }
///         worker.finish()?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameters {
    count: usize,
    servers: Vec<Rank>,
    staleness: Staleness,
    sparse: usize,
}

/// How far workers may be apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Staleness {
    /// A step is the sum of one push of every worker: all compute on the same parameters.
    #[default]
    Synchronous,
    /// Every push is a step. A worker may be this many pushes ahead of the slowest one before its pull waits for that.
    Bounded(usize),
}

/// What a rank is to the parameters.
#[derive(Debug)]
pub enum Role<T: Arithmetic> {
    /// It keeps a shard of them.
    Server(Server<T>),
    /// It pushes and pulls.
    Worker(Worker<T>),
}

impl Parameters {
    /// `count` parameters on rank 0, for workers in step; [`servers`](Self::servers), [`staleness`](Self::staleness) and
    /// [`sparse`](Self::sparse) ask for something else.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { count, servers: vec![0], staleness: Staleness::Synchronous, sparse: 0 }
    }

    /// The ranks that keep the parameters, a shard each, in this order. All others are workers.
    #[must_use]
    pub fn servers(mut self, servers: &[Rank]) -> Self {
        self.servers = servers.to_vec();
        self
    }

    /// How far workers may be apart.
    #[must_use]
    pub fn staleness(mut self, staleness: Staleness) -> Self {
        self.staleness = staleness;
        self
    }

    /// The most entries of a sparse push on one server. Each takes 4 bytes there for each worker.
    #[must_use]
    pub fn sparse(mut self, entries: usize) -> Self {
        self.sparse = entries;
        self
    }

    /// Takes the place of this rank. All ranks of `communicator` call it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) on all ranks when they do not ask for the same, no rank is left to be a worker, a server does not exist or
    /// stands there twice, a shard has more than 2³² elements, or there are more than 341 workers; those of
    /// [`create_window`](Communicator::create_window).
    pub fn open<T: Arithmetic>(&self, communicator: &Communicator) -> Result<Role<T>> {
        self.check(communicator)?;
        let (rank, size) = (communicator.rank(), communicator.size());
        let place = Place {
            shards: (0..self.servers.len())
                .map(|index| partition(self.count, self.servers.len(), index))
                .collect(),
            servers: self.servers.clone(),
            workers: (0..size).filter(|rank| !self.servers.contains(rank)).collect(),
            sparse: self.sparse,
        };
        let server = self.servers.iter().position(|server| *server == rank);
        let [values, indices] = server.map_or([0, 0], |server| place.counts(server));
        let windows = Windows {
            values: communicator.create_window(values)?,
            indices: communicator.create_window(indices)?,
        };
        Ok(match server {
            Some(index) => Role::Server(Server::new(place, windows, index, self.staleness)),
            None => {
                let index = place.workers.iter().position(|worker| *worker == rank).unwrap_or_default();
                Role::Worker(Worker::new(place, windows, index, self.staleness))
            }
        })
    }

    fn check(&self, communicator: &Communicator) -> Result<()> {
        let size = communicator.size();
        self.check_same(communicator)?;
        let problem = if let Some(server) = self.servers.iter().find(|server| **server >= size) {
            format!("there is no rank {server} to be a server: ranks are below {size}")
        } else if let Some(server) = repeated(&self.servers) {
            format!("rank {server} stands twice in the list of servers")
        } else if self.servers.is_empty() {
            "there is no server: name at least one rank".to_owned()
        } else if self.servers.len() == size {
            "all ranks are servers: leave at least one to be a worker".to_owned()
        } else if size - self.servers.len() > WORKERS {
            format!(
                "{} workers, but a server counts the notices of {WORKERS} at most",
                size - self.servers.len()
            )
        } else if u32::try_from(self.count.div_ceil(self.servers.len())).is_err() {
            format!("{} parameters on {} servers: name more servers", self.count, self.servers.len())
        } else {
            return Ok(());
        };
        Err(misuse(problem))
    }

    /// All ranks find the first that differs from rank 0.
    fn check_same(&self, communicator: &Communicator) -> Result<()> {
        let staleness = match self.staleness {
            Staleness::Synchronous => u64::MAX,
            Staleness::Bounded(steps) => steps as u64,
        };
        let mut own = vec![self.count as u64, staleness, self.sparse as u64];
        own.extend(self.servers.iter().map(|server| *server as u64));
        let all = communicator.all_gather_varying(&own)?;
        match (0..communicator.size()).find(|rank| all.of(*rank) != all.of(0)) {
            Some(rank) => {
                let text = "asks for other parameters than rank 0: all ranks ask for the same";
                Err(misuse(format!("rank {rank} {text}")))
            }
            None => Ok(()),
        }
    }
}

/// Who is who, and where what lies.
#[derive(Debug)]
struct Place {
    servers: Vec<Rank>,
    workers: Vec<Rank>,
    /// By server.
    shards: Vec<Range<usize>>,
    /// Entries of a sparse push.
    sparse: usize,
}

impl Place {
    /// Elements of a server's part of both windows: its shard, then a slot for each worker.
    fn counts(&self, server: usize) -> [usize; 2] {
        let shard = self.shards[server].len();
        let entries = if self.sparse == 0 { 0 } else { 1 + self.sparse };
        [shard * (1 + self.workers.len()), entries * self.workers.len()]
    }

    /// The first element of a worker's slot.
    fn slot(&self, server: usize, worker: usize) -> usize {
        self.shards[server].len() * (1 + worker)
    }

    /// Where the number of a worker's entries stands, with their places in the shard behind it.
    fn entries(&self, worker: usize) -> usize {
        (1 + self.sparse) * worker
    }
}

/// One that carries values and notices, and one for what sparse pushes name.
#[derive(Debug)]
struct Windows<T: Arithmetic> {
    values: Window<T>,
    indices: Window<u32>,
}

impl<T: Arithmetic> Windows<T> {
    fn set_timeout(&self, timeout: Option<Duration>) {
        self.values.set_timeout(timeout);
        self.indices.set_timeout(timeout);
    }
}

/// What a worker raises at a server, for each worker.
#[derive(Clone, Copy)]
enum FromWorker {
    Dense,
    Sparse,
    Done,
}

/// What a server raises at a worker, for each server.
#[derive(Clone, Copy)]
enum FromServer {
    /// The worker's slot is free: first when the parameters are there.
    Free,
    /// The slowest worker has come one push further.
    Clock,
    /// Nothing more will come.
    Bye,
}

const KINDS: usize = 3;

/// The most workers that have notices of their own at a server.
const WORKERS: usize = Window::<f32>::NOTICES / KINDS;

impl FromWorker {
    const ALL: [Self; KINDS] = [Self::Dense, Self::Sparse, Self::Done];

    fn notice(self, worker: usize) -> usize {
        worker * KINDS + self as usize
    }
}

impl FromServer {
    fn notice(self, server: usize) -> usize {
        server * KINDS + self as usize
    }
}

fn repeated(ranks: &[Rank]) -> Option<Rank> {
    ranks.iter().enumerate().find(|(index, rank)| ranks[..*index].contains(rank)).map(|(_, rank)| *rank)
}

fn misuse(text: String) -> Error {
    Error::Misuse(text.into())
}
