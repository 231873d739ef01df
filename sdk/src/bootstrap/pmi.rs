//! PMI-1, the text protocol between a process manager and its ranks, without an MPI library.
//!
//! Source: "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale Systems" (Balaji et al.,
//! EuroMPI 2010), and MPICH's documentation of the simple PMI wire protocol. Spoken by MPICH's and Intel's
//! hydra, and by Slurm (`--mpi=pmi2` starts ranks that may speak either).
//!
//! A process may do this once: PMI has no way to start again after `finalize`.

mod fd;
mod message;
mod session;

use super::agreement::{Agreement, agree};
use super::sources::Sighting;
use super::{Bootstrap, Local, Placement};
use crate::config::{MeetingAddress, address, setting};
use crate::{Error, JobSecret, Rank, Result};
use session::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How to reach the process manager.
#[derive(PartialEq, Debug)]
pub(super) struct Contact {
    wire: Wire,
    local: Option<Local>,
}

#[derive(PartialEq, Debug)]
enum Wire {
    /// A connected socket that this process has inherited.
    Descriptor { number: i32, rank: Rank, size: usize },
    /// A server that knows the rank and the size of whoever shows this identifier.
    Port { address: MeetingAddress, id: String },
}

impl Contact {
    pub(super) fn new(sighting: &Sighting, local: Option<Local>) -> Result<Self> {
        let value = |name| sighting.value(name).unwrap_or_default();
        let wire = match (sighting.rank, sighting.size) {
            (Some(rank), Some(size)) => {
                let text = value("PMI_FD");
                let number = text.parse().ok().filter(|&number: &i32| number > 2);
                let number =
                    number.ok_or_else(|| setting("PMI_FD", text, "the number of an inherited socket"))?;
                Wire::Descriptor { number, rank, size }
            }
            _ => {
                let text = value("PMI_PORT");
                let address = address(text).map_err(|allowed| setting("PMI_PORT", text, &allowed))?;
                Wire::Port { address, id: value("PMI_ID").to_owned() }
            }
        };
        Ok(Self { wire, local })
    }
}

/// Meets the other ranks through the process manager.
pub(super) fn meet(
    contact: &Contact,
    key: Option<JobSecret>,
    deadline: Instant,
    source: &'static str,
) -> Result<Placement> {
    if IS_USED.swap(true, Ordering::Relaxed) {
        return Err(Error::Bootstrap(Arc::from(
            "this process has already met the others through PMI, which can be done once: start again under \
             `gradwire run`, or set GRADWIRE_RANK, GRADWIRE_SIZE and GRADWIRE_ADDRESS",
        )));
    }
    let session = Session::open(&contact.wire, deadline)?;
    join(session, contact.local, key, deadline, source)
}

fn join(
    session: Session,
    local: Option<Local>,
    key: Option<JobSecret>,
    deadline: Instant,
    source: &'static str,
) -> Result<Placement> {
    let mut pmi = Pmi { session, local };
    let Agreement { secret, epoch } = agree(&mut pmi, key, deadline)?;
    Ok(Placement { bootstrap: Box::new(pmi), secret: Some(secret), epoch, source })
}

/// A rank that reaches the others through its process manager.
#[derive(Debug)]
struct Pmi {
    session: Session,
    local: Option<Local>,
}

impl Bootstrap for Pmi {
    fn rank(&self) -> Rank {
        self.session.rank()
    }

    fn size(&self) -> usize {
        self.session.size()
    }

    fn local(&self) -> Option<Local> {
        self.local
    }

    fn all_gather(&mut self, bytes: &[u8], deadline: Instant) -> Result<Vec<Vec<u8>>> {
        self.session.all_gather(bytes, deadline)
    }

    fn barrier(&mut self, deadline: Instant) -> Result<()> {
        self.session.barrier(deadline)
    }
}

impl Drop for Pmi {
    /// A process manager takes a rank that ends without a word for a failure, and ends the others.
    fn drop(&mut self) {
        if let Err(error) = self.session.finalize(Instant::now() + FAREWELL) {
            tracing::debug!("the process manager did not say goodbye: {error}");
        }
    }
}

fn bootstrap(reason: String) -> Error {
    Error::Bootstrap(Arc::from(reason))
}

static IS_USED: AtomicBool = AtomicBool::new(false);
const FAREWELL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
