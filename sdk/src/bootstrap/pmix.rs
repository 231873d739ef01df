//! PMIx, which Open MPI's `mpirun` and `srun --mpi=pmix` speak: through the launcher's own library, loaded when it is
//! needed.
//!
//! Source: the PMIx Standard 4.1 and 5.0 (PMIx_Put, PMIx_Commit, PMIx_Fence, PMIx_Get). Asked only where the ranks run on
//! several hosts and no address is set: within a host a socket does.
//!
//! The library waits without a deadline, so a thread of its own calls it. If it does not come back in time, the start
//! fails and the thread is left behind.

mod library;
mod search;
mod session;

use super::agreement::{Agreement, agree};
use super::sources::Sighting;
use super::{Bootstrap, Local, Placement};
use crate::{Config, Error, JobSecret, Rank, Result};
use session::Session;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is known before the library is asked.
#[derive(PartialEq, Debug)]
pub(super) struct Contact {
    rank: Rank,
    size: usize,
    local: Option<Local>,
    /// Where the library may be.
    candidates: Vec<PathBuf>,
}

impl Contact {
    /// Nothing where the launcher offers no PMIx.
    pub(super) fn new(sighting: &Sighting, local: Option<Local>, config: &Config) -> Option<Self> {
        let environment = &config.environment;
        environment.get("PMIX_NAMESPACE").and(environment.get("PMIX_RANK"))?;
        Some(Self {
            rank: sighting.rank?,
            size: sighting.size?,
            local,
            candidates: search::candidates(config),
        })
    }
}

/// Meets the other ranks through the launcher.
pub(super) fn meet(
    contact: Contact,
    key: Option<JobSecret>,
    deadline: Instant,
    source: &'static str,
) -> Result<Placement> {
    let Contact { rank, size, local, candidates } = contact;
    let open = move || Session::open(library::load(&candidates)?);
    let mut pmix = Pmix::new(open, rank, size, local)?;
    let Agreement { secret, epoch } = agree(&mut pmix, key, deadline)?;
    Ok(Placement { bootstrap: Box::new(pmix), secret: Some(secret), epoch, source })
}

/// A rank that reaches the others through PMIx.
#[derive(Debug)]
struct Pmix {
    rank: Rank,
    size: usize,
    local: Option<Local>,
    contributions: Option<Sender<Vec<u8>>>,
    answers: Receiver<Result<Vec<Vec<u8>>, String>>,
    thread: Option<JoinHandle<()>>,
}

impl Pmix {
    /// Starts the thread that calls the library.
    fn new(
        open: impl FnOnce() -> Result<Session, String> + Send + 'static,
        rank: Rank,
        size: usize,
        local: Option<Local>,
    ) -> Result<Self> {
        let (contributions, taken) = channel::<Vec<u8>>();
        let (answer, answers) = channel();
        let work = move || {
            let session = open().and_then(|session| session.check(rank));
            match session {
                Ok(mut session) => {
                    // Ends when the other side is dropped; dropping the session says goodbye.
                    taken
                        .iter()
                        .map(|bytes| session.all_gather(&bytes, size))
                        .all(|all| answer.send(all).is_ok());
                }
                // Nobody may be there to hear it any more.
                Err(reason) => drop(answer.send(Err(reason))),
            }
        };
        let thread = std::thread::Builder::new().name("gradwire-pmix".into()).spawn(work);
        let thread =
            thread.map_err(|error| Error::System(Arc::from(format!("no thread for PMIx: {error}"))))?;
        Ok(Self { rank, size, local, contributions: Some(contributions), answers, thread: Some(thread) })
    }
}

impl Bootstrap for Pmix {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local(&self) -> Option<Local> {
        self.local
    }

    fn all_gather(&mut self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        if let Some(contributions) = &self.contributions {
            // If the thread has ended, it has said why.
            let _ = contributions.send(bytes.to_vec());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = self.answers.recv_timeout(left).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => "it did not answer in time: other ranks may not have started",
                RecvTimeoutError::Disconnected => "it has failed before",
            }
            .to_owned())
        });
        answer.map_err(|reason| {
            // An answer that comes late belongs to no call.
            self.contributions = None;
            Error::Bootstrap(Arc::from(format!(
                "the ranks run on several hosts and cannot meet through PMIx: {reason}. Set GRADWIRE_PMIX to the \
                 launcher's libpmix.so.2, or GRADWIRE_ADDRESS=HOST:PORT for all ranks, with a free port on the host of \
                 rank 0"
            )))
        })
    }
}

impl Drop for Pmix {
    fn drop(&mut self) {
        self.contributions = None;
        // The thread hangs up when it is done.
        match (self.answers.recv_timeout(FAREWELL), self.thread.take()) {
            (Err(RecvTimeoutError::Disconnected), Some(thread)) => {
                let _ = thread.join();
            }
            _ => tracing::debug!("PMIx did not say goodbye"),
        }
    }
}

const FAREWELL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
