//! Why a communicator can no longer be used: the first cause, as every survivor reports it.

use super::port::Process;
use crate::{Call, Error, Rank};
use std::sync::Arc;
use std::time::Duration;

/// A cause that ends a communicator. Processes are numbered by the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A process is gone that calls of the communicator need.
    Lost { process: Process, host: Arc<str>, reason: Arc<str> },
    /// A call of the communicator passed its deadline.
    TimedOut { call: Call, waited: Duration, waiting_for: Arc<[Process]> },
    /// Somebody asked everyone to stop.
    Aborted { process: Process, reason: Arc<str> },
}

impl Fault {
    /// The error that members of a communicator get.
    pub(crate) fn error(&self, members: &[Process], own: Process) -> Error {
        let rank_of = |process: &Process| -> Rank {
            members.iter().position(|member| member == process).unwrap_or(*process as Rank)
        };
        match self {
            Self::Lost { process, reason, .. } if *process == own => Error::Aborted {
                rank: rank_of(&own),
                reason: format!("the other ranks gave up on this one: {reason}").into(),
            },
            Self::Lost { process, host, reason } => {
                Error::PeerLost { rank: rank_of(process), host: host.clone(), reason: reason.clone() }
            }
            Self::TimedOut { waiting_for, call, .. } if waiting_for.contains(&own) => Error::Aborted {
                rank: rank_of(&own),
                reason: format!("the other ranks gave up on {call}: they waited for this one").into(),
            },
            Self::TimedOut { call, waited, waiting_for, .. } => Error::TimedOut {
                call: call.clone(),
                waited: *waited,
                waiting_for: waiting_for.iter().map(rank_of).collect(),
            },
            Self::Aborted { process, reason } => {
                Error::Aborted { rank: rank_of(process), reason: reason.clone() }
            }
        }
    }
}
