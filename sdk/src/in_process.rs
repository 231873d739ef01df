//! Ranks as threads of one process, for tests of programs that use this library.

use crate::communicator::Communicator;
use crate::job::{Job, Parts};
use crate::select::Tuning;
use crate::wire_up::{self, Identity};
use crate::{Error, Rank, Result};
use gradwire_transport::Transport;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long ranks wait for each other at the start.
const START: Duration = Duration::from_secs(60);

/// Runs `program` as `ranks` ranks, each a thread with a communicator, and returns what each returned, by rank.
///
/// The ranks are joined as the processes of a host are: by shared memory where the feature `shm` is on, else by TCP.
///
/// ```
/// let sums = gradwire::run(3, |comm| {
///     let mut values = [comm.rank() as f32, 1.0];
///     comm.all_reduce(&mut values, gradwire::Sum).unwrap();
///     values
/// }).unwrap();
/// assert_eq!(sums, [[3.0, 3.0]; 3]);
/// ```
///
/// # Errors
///
/// [`Error::Bootstrap`] and [`Error::System`] when the ranks cannot be joined.
///
/// # Panics
///
/// When `program` does: the first rank's panic goes on in the caller, after all ranks have ended.
pub fn run<R: Send>(ranks: usize, program: impl Fn(Communicator) -> R + Sync) -> Result<Vec<R>> {
    run_over(ranks, default_transport, program)
}

/// As [`run`], over transports of the caller's choice: `transport` makes that of one rank.
///
/// # Errors
///
/// As [`run`].
///
/// # Panics
///
/// As [`run`].
pub fn run_over<R: Send>(
    ranks: usize,
    transport: impl Fn(Rank) -> Result<Box<dyn Transport>> + Sync,
    program: impl Fn(Communicator) -> R + Sync,
) -> Result<Vec<R>> {
    run_tuned(ranks, &Tuning::default(), transport, program)
}

/// As [`run_over`], with algorithms of the caller's choice.
pub(crate) fn run_tuned<R: Send>(
    ranks: usize,
    tuning: &Tuning,
    transport: impl Fn(Rank) -> Result<Box<dyn Transport>> + Sync,
    program: impl Fn(Communicator) -> R + Sync,
) -> Result<Vec<R>> {
    if ranks == 0 {
        return Err(Error::Misuse("a job has at least one rank".into()));
    }
    let table = Table::new(ranks);
    let crowded = ranks > std::thread::available_parallelism().map_or(1, usize::from);
    let start = |rank: Rank| -> Result<Communicator> {
        let identity = Identity {
            rank,
            size: ranks,
            job: "in process".to_owned(),
            tuning: tuning.to_string(),
            host: "localhost".to_owned(),
            processors: Vec::new(),
        };
        let deadline = Instant::now() + START;
        let mut round = 0;
        let mut exchange = |bytes: &[u8]| {
            round += 1;
            table.all_gather(round, rank, bytes, deadline)
        };
        let wired =
            transport(rank).and_then(|own| wire_up::connect(&identity, vec![own], &mut exchange, deadline));
        let wired = wired.inspect_err(|error| table.fail(error))?;
        let parts = Parts {
            own: rank as u32,
            places: wired.places,
            wires: wired.wires,
            timeout: START,
            tuning: tuning.clone(),
            crowded,
        };
        Job::new(parts)?.world()
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                let (start, program) = (&start, &program);
                scope.spawn(move || start(rank).map(program))
            })
            .collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

#[cfg(feature = "shm")]
fn default_transport(_: Rank) -> Result<Box<dyn Transport>> {
    crate::transports::shm(None)
}

#[cfg(all(feature = "tcp", not(feature = "shm")))]
fn default_transport(_: Rank) -> Result<Box<dyn Transport>> {
    crate::transports::tcp(&crate::Config::default(), None)
}

#[cfg(not(any(feature = "shm", feature = "tcp")))]
fn default_transport(_: Rank) -> Result<Box<dyn Transport>> {
    Err(Error::Misuse("no transport is compiled in: switch on the feature `shm` or `tcp`".into()))
}

/// Where the threads meet at the start.
struct Table {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// By round, then by rank.
    rounds: Vec<Vec<Option<Vec<u8>>>>,
    failed: Option<Error>,
    ranks: usize,
}

impl Table {
    fn new(ranks: usize) -> Self {
        Self { state: Mutex::new(State { rounds: Vec::new(), failed: None, ranks }), changed: Condvar::new() }
    }

    fn all_gather(&self, round: usize, rank: Rank, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ranks = state.ranks;
        if state.rounds.len() <= round {
            state.rounds.resize(round + 1, vec![None; ranks]);
        }
        state.rounds[round][rank] = Some(bytes.to_vec());
        self.changed.notify_all();
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if let Some(all) = state.rounds[round].iter().cloned().collect() {
                return Ok(all);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Bootstrap("a rank did not come to the meeting in time".into()));
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn fail(&self, error: &Error) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.get_or_insert_with(|| error.clone());
        self.changed.notify_all();
    }
}
