//! From a launched process to the communicator of its job.

use crate::bootstrap::{self, Agreement, Bootstrap, Placement};
use crate::communicator::Communicator;
use crate::config::TransportChoice;
use crate::job::{Job, Parts};
use crate::select::Tuning;
use crate::wire_up::{self, Identity};
use crate::{Config, Error, JobSecret, Result, transports};
use gradwire_transport::Transport;
use std::time::Instant;

/// Finds the place of this process in its job, connects to the other ranks, and returns the communicator of all.
///
/// Works under `gradwire run`, `mpirun`, `mpiexec`, `srun`, `torchrun`, by hand through environment variables, and for
/// a process on its own; [`bootstrap`] tells how the place is found, [`Config`] what can be set.
///
/// # Errors
///
/// [`Error::Bootstrap`] when variables are missing or contradict each other, or a rank cannot be reached;
/// [`Error::System`] when the system refuses what is needed. Never as many jobs of one.
pub fn init() -> Result<Communicator> {
    init_with(&Config::from_environment()?)
}

/// As [`init`], with settings of the program's choice.
///
/// # Errors
///
/// As [`init`].
pub fn init_with(config: &Config) -> Result<Communicator> {
    let deadline = Instant::now() + config.start_timeout;
    let tuning = tuning(config)?;
    let Placement { mut bootstrap, secret, epoch, source } = bootstrap::discover(config)?;
    let open = &mut |key| transports::open(config, key);
    start(&mut *bootstrap, Start { config, tuning, secret, epoch, source, deadline }, open)
}

/// As [`init_with`], for ranks that can exchange bytes already, by MPI for example: no launcher is asked.
///
/// Only the ranks of the job may be reached through `bootstrap`: over it they agree on the secret that keeps others out.
///
/// # Errors
///
/// As [`init`], and those of `bootstrap`.
pub fn init_over(bootstrap: &mut dyn Bootstrap, config: &Config) -> Result<Communicator> {
    let deadline = Instant::now() + config.start_timeout;
    let tuning = tuning(config)?;
    let Agreement { secret, epoch } = bootstrap::given(bootstrap, config)?;
    let secret = Some(secret);
    let open = &mut |key| transports::open(config, key);
    start(bootstrap, Start { config, tuning, secret, epoch, source: "the program", deadline }, open)
}

/// As [`init_over`], over a transport that the program brings. Ranks of one host use shared memory instead if
/// [`transport`](Config::transport) is [`Auto`](TransportChoice::Auto) and the library is built with it.
///
/// # Errors
///
/// As [`init_over`]; [`Error::Bootstrap`] if the settings ask for another transport than those two.
pub fn init_over_transport(
    bootstrap: &mut dyn Bootstrap,
    config: &Config,
    transport: Box<dyn Transport>,
) -> Result<Communicator> {
    let deadline = Instant::now() + config.start_timeout;
    let tuning = tuning(config)?;
    let Agreement { secret, epoch } = bootstrap::given(bootstrap, config)?;
    let secret = Some(secret);
    let mut transport = Some(transport);
    let open = &mut |key| {
        let mut all = match config.transport {
            TransportChoice::Auto => transports::inside_hosts(key)?,
            TransportChoice::Own => Vec::new(),
            choice => {
                let reason = format!("the program brings a transport, but the settings ask for {choice:?}");
                return Err(Error::Bootstrap(format!("{reason}: unset GRADWIRE_TRANSPORT").into()));
            }
        };
        all.extend(transport.take());
        Ok(all)
    };
    start(bootstrap, Start { config, tuning, secret, epoch, source: "the program", deadline }, open)
}

/// What ranks must agree on beyond the calls: which algorithm serves which size.
fn tuning(config: &Config) -> Result<Tuning> {
    let Some(text) = &config.tune else { return Ok(Tuning::default()) };
    text.parse().map_err(|error| Error::Bootstrap(format!("GRADWIRE_TUNE: {error}").into()))
}

struct Start<'a> {
    config: &'a Config,
    tuning: Tuning,
    secret: Option<JobSecret>,
    epoch: [u8; 16],
    source: &'static str,
    deadline: Instant,
}

/// Makes the transports of a job with this secret.
type Open<'a> = dyn FnMut(Option<[u8; 32]>) -> Result<Vec<Box<dyn Transport>>> + 'a;

fn start(bootstrap: &mut dyn Bootstrap, start: Start<'_>, open: &mut Open<'_>) -> Result<Communicator> {
    let Start { config, tuning, secret, epoch, source, deadline } = start;
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let identity = Identity {
        rank,
        size,
        job: epoch.iter().map(|byte| format!("{byte:02x}")).collect(),
        tuning: tuning.to_string(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        processors: processors(),
    };
    let key = secret.as_ref().map(|secret| *secret.as_bytes());
    let carriers = if size == 1 { Vec::new() } else { open(key)? };
    let wired =
        wire_up::connect(&identity, carriers, &mut |bytes| bootstrap.all_gather(bytes, deadline), deadline)?;
    let paths: Vec<&str> = (0..size as u32).map(|process| wired.wires.name_of(process)).collect();
    let authenticated = secret.is_some();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        rank,
        ranks = size,
        source,
        authenticated,
        paths = paths.join(" "),
        "started"
    );
    let parts = Parts {
        own: rank as u32,
        places: wired.places,
        wires: wired.wires,
        timeout: config.timeout,
        tuning,
        crowded: wired.crowded,
    };
    Job::new(parts)?.world()
}

/// The processors this process may run on, as bits.
fn processors() -> Vec<u64> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let mut words = vec![0_u64; rustix::thread::CpuSet::MAX_CPU / 64];
    (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .for_each(|cpu| words[cpu / 64] |= 1 << (cpu % 64));
    while words.last() == Some(&0) {
        words.pop();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Local;
    use crate::{Rank, Sum};
    use std::sync::{Barrier, Mutex};

    /// Ranks of one process: a board that all write to, then all read.
    #[derive(Debug)]
    struct Board {
        places: Mutex<Vec<Vec<u8>>>,
        barrier: Barrier,
    }

    #[derive(Debug)]
    struct Reader<'a> {
        board: &'a Board,
        rank: Rank,
        size: usize,
    }

    impl Bootstrap for Reader<'_> {
        fn rank(&self) -> Rank {
            self.rank
        }

        fn size(&self) -> usize {
            self.size
        }

        fn local(&self) -> Option<Local> {
            None
        }

        fn all_gather(&mut self, bytes: &[u8], _deadline: Instant) -> Result<Vec<Vec<u8>>> {
            self.board.places.lock().unwrap()[self.rank] = bytes.to_vec();
            self.board.barrier.wait();
            let all = self.board.places.lock().unwrap().clone();
            self.board.barrier.wait();
            Ok(all)
        }
    }

    /// What each of `ranks` makes of a board on which each believes in `size` ranks.
    fn start<T: Send>(ranks: usize, size: usize, end: impl Fn(Result<Communicator>) -> T + Sync) -> Vec<T> {
        let board = Board { places: Mutex::new(vec![Vec::new(); ranks]), barrier: Barrier::new(ranks) };
        let rank = &|rank| end(init_over(&mut Reader { board: &board, rank, size }, &Config::default()));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..ranks).map(|number| scope.spawn(move || rank(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_that_can_exchange_bytes_need_no_launcher() {
        let sums = start(3, 3, |communicator| {
            let communicator = communicator.unwrap();
            let mut values = [communicator.rank() as u64 + 1, 10];
            communicator.all_reduce(&mut values, Sum).unwrap();
            values
        });
        assert_eq!(sums, [[6, 30]; 3]);
    }

    #[test]
    fn a_channel_that_says_two_things_is_refused() {
        for error in start(2, 3, |outcome| outcome.unwrap_err().to_string()) {
            assert!(error.contains("2 ranks answered rank"), "{error}");
        }
    }
}
