//! How a process finds its place in a job, before any transport exists.
//!
//! [`discover`] looks at the settings and at what launchers leave in the environment, in this order:
//!
//! 1. the project's own variables, by hand or from `gradwire run`;
//! 2. a process manager that speaks PMI-1: MPICH's and Intel's hydra, `srun --mpi=pmi2`;
//! 3. Open MPI's `mpirun`, over PMIx where the ranks run on several hosts;
//! 4. `torchrun`;
//! 5. `srun`, over PMIx where it offers that (`--mpi=pmix`) and the ranks run on several hosts;
//! 6. nothing: a process on its own.
//!
//! No MPI library is linked. A launcher that says that there are several ranks, but not how to meet them, is
//! an error that lists what was found and what is missing; so are launchers that contradict each other. Ranks
//! never start as many jobs of one.

mod agreement;
mod place;
mod pmi;
mod pmix;
pub(crate) mod rendezvous;
mod single;
mod sources;
mod stream;

use crate::{Config, JobSecret, Rank, Result, launch, logging};
pub(crate) use agreement::Agreement;
use place::{Place, Seat};
use rendezvous::{Client, Host, Rendezvous, Request, Rules};
use single::Single;
use std::fmt;
use std::time::Instant;
pub(crate) use stream::wait_until;

/// What the ranks of a job can do together before they are connected.
///
/// Every call is one that all ranks make, in the same order, and ends by its deadline.
pub trait Bootstrap: fmt::Debug {
    /// The number of this process within the job.
    fn rank(&self) -> Rank;

    /// How many processes the job has.
    fn size(&self) -> usize;

    /// What the launcher says about this host, if it says anything. A hint: only trying tells which ranks
    /// share memory.
    fn local(&self) -> Option<Local>;

    /// Gives `bytes`, at most 64 KiB, to all ranks and returns theirs, by rank.
    fn all_gather(&mut self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>>;

    /// Returns when all ranks have called it.
    fn barrier(&mut self, deadline: Instant) -> Result<()> {
        self.all_gather(&[], deadline).map(drop)
    }
}

/// The place of a process among the processes of its host, as a launcher tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Local {
    /// `0..size`.
    pub rank: usize,
    /// How many processes of the job run on this host.
    pub size: usize,
}

/// The place of this process, and what it needs to meet the others.
#[derive(Debug)]
#[non_exhaustive]
pub struct Placement {
    /// Reaches the other ranks. Drop it when the transports are connected.
    pub bootstrap: Box<dyn Bootstrap + Send>,
    /// Proves that a process belongs to this incarnation of the job. Without one, nothing is authenticated.
    pub secret: Option<JobSecret>,
    /// Random, the same on all ranks, new for every incarnation of the job.
    pub epoch: [u8; 16],
    /// Who said so: for the log.
    pub source: &'static str,
}

/// Finds the place of this process and meets the other ranks, within
/// [`start_timeout`](Config::start_timeout).
///
/// Installs the log that [`Config::log`] asks for, if the program has none. A process that `gradwire run` or [`Launcher`](launch::Launcher) started is tied to its launcher from here
/// on: it does not outlive it.
pub fn discover(config: &Config) -> Result<Placement> {
    let deadline = Instant::now() + config.start_timeout;
    let key = prepare(config)?;
    launch::tie_to_launcher(&config.environment)?;
    let (place, source) = place::find(config)?;
    tracing::debug!("{place:?}, according to {source}");
    match place {
        Place::Alone => alone(key, source),
        Place::Meeting(seat) => meet(&seat, key, deadline, source),
        Place::Pmi(contact) => pmi::meet(&contact, key, deadline, source),
        Place::Pmix(contact) => pmix::meet(contact, key, deadline, source),
    }
}

/// What the ranks agree on over a channel of the program's own: no launcher is asked.
pub(crate) fn given(bootstrap: &mut dyn Bootstrap, config: &Config) -> Result<Agreement> {
    let key = prepare(config)?;
    agreement::agree(bootstrap, key, Instant::now() + config.start_timeout)
}

/// Checks the settings, installs the log, and reads the secret that all incarnations of the job share.
fn prepare(config: &Config) -> Result<Option<JobSecret>> {
    config.validate()?;
    if let Some(level) = config.log {
        logging::install(level);
    }
    config.warn_of_strangers();
    config.secret_file.as_deref().map(JobSecret::from_file).transpose()
}

/// What launchers have left, each in words.
#[cfg(feature = "cli")]
pub(crate) fn sightings(config: &Config) -> Result<Vec<String>> {
    Ok(place::sightings(config)?.iter().map(ToString::to_string).collect())
}

/// Whether anybody started this process as a rank.
pub(crate) fn is_rank(config: &Config) -> Result<bool> {
    Ok(place::find(config)?.1 != place::NOBODY)
}

fn alone(key: Option<JobSecret>, source: &'static str) -> Result<Placement> {
    let epoch = crate::secret::random()?;
    let secret = match key {
        Some(key) => rendezvous::incarnation(&key, &epoch),
        None => JobSecret::random()?,
    };
    Ok(Placement { bootstrap: Box::new(Single), secret: Some(secret), epoch, source })
}

fn meet(seat: &Seat, key: Option<JobSecret>, deadline: Instant, source: &'static str) -> Result<Placement> {
    let Seat { rank, size, local, ref address, is_hosted } = *seat;
    let start = || Host::start(address, Rules { size, key: key.clone(), repeats: false });
    let is_here = || !is_hosted && rendezvous::is_here(address, deadline);
    let mut host = None;
    if rank == 0 && is_here() {
        host = match start() {
            Ok(host) => Some(host),
            // Another rank stands in that did not want to wait any longer.
            Err(_) if Client::answers(address, deadline) => None,
            Err(error) => return Err(error),
        };
    }
    let own_view = host.as_ref().map(|_| rendezvous::own_view(address));
    let request = Request {
        address: own_view.as_ref().unwrap_or(address),
        rank,
        size,
        key: key.as_ref(),
        is_hosted,
        deadline,
    };
    let client = Client::join_or(&request, &mut || {
        if host.is_none() && is_here() {
            // Of several that try one succeeds.
            host = start().ok();
        }
    })?;
    let (secret, epoch) = (client.secret().cloned(), client.epoch());
    if secret.is_none() && rank == 0 {
        tracing::warn!(
            "the ranks meet at {address} without a secret: set GRADWIRE_SECRET_FILE to keep others out"
        );
    }
    Ok(Placement { bootstrap: Box::new(Rendezvous::new(client, host, local)), secret, epoch, source })
}
