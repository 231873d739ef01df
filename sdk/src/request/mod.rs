//! Operations that go on while the program does something else.
//!
//! An owned [`Request`] takes its buffer along and is a future that borrows nothing: any executor may run it, and
//! dropping it lets the operation complete by itself. A [`Scope`] lends borrowed slices to operations and waits for all
//! of them before it ends, so that leaking a request leaks nothing else.

mod many;
mod messages;
mod owned;
mod owned_calls;
mod persistent;
mod scope;
mod scoped_calls;
mod telling_calls;

pub use many::{wait_all, wait_any, wait_some};
pub use owned::Request;
pub use persistent::Persistent;
pub use scope::{Scope, ScopedRequest};

use crate::communicator::{Conclude, Start};
use crate::engine::Key;
use crate::job::Job;
use crate::{Error, Result};

/// An operation, from its start to its conclusion.
enum Operation<R> {
    /// It never began.
    Refused(Error),
    UnderWay(Key, Conclude<R>),
}

impl<R> Operation<R> {
    fn start(job: &Job, start: Result<Start<R>>) -> Self {
        match start {
            Ok(Start { begin, work, conclude }) => {
                let key = job.shared().begin(begin, work);
                job.shared().nudge();
                Self::UnderWay(key, conclude)
            }
            Err(error) => Self::Refused(error),
        }
    }

    fn wait(self, job: &Job) -> Result<R> {
        match self {
            Self::Refused(error) => Err(error),
            Self::UnderWay(key, conclude) => conclude(job.shared().wait(key)),
        }
    }

    /// The operation in the engine, if it has begun.
    fn key(&self) -> Option<Key> {
        match self {
            Self::Refused(_) => None,
            Self::UnderWay(key, _) => Some(*key),
        }
    }
}
