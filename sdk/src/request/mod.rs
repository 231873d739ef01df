//! Operations that go on while the program does something else.
//!
//! An owned [`Request`] takes its buffer along and is a future that borrows nothing: any executor may run it, and
//! dropping it lets the operation complete by itself. A [`Scope`] lends borrowed slices to operations and waits for all
//! of them before it ends, so that leaking a request leaks nothing else.

mod gradient_calls;
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
use crate::engine::{Begin, Key, Outcome, Work};
use crate::job::Job;
use crate::{Error, Result};

/// An operation, from its start to its conclusion; `M` is what it was started with.
enum Operation<M, R> {
    /// It never began.
    Refused(Error),
    UnderWay(Key, Conclusion<M, R>),
}

/// How an operation is concluded.
enum Conclusion<M, R> {
    /// It knows itself where its memory is.
    Apart(Conclude<R>),
    /// In what it was started with, of which it uses nothing before.
    Within(ConcludeWithin<M, R>),
}

type ConcludeWithin<M, R> = Box<dyn FnOnce(&mut M, Result<Outcome>) -> Result<R> + Send>;

impl<M, R> Operation<M, R> {
    fn start(job: &Job, start: Result<Start<R>>) -> Self {
        match start {
            Ok(Start { begin, work, conclude }) => {
                Self::UnderWay(start_in_engine(job, begin, work), Conclusion::Apart(conclude))
            }
            Err(error) => Self::Refused(error),
        }
    }

    fn wait(self, job: &Job, memory: &mut M) -> Result<R> {
        match self {
            Self::Refused(error) => Err(error),
            Self::UnderWay(key, conclusion) => conclusion.conclude(memory, job.shared().wait(key)),
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

impl<M, R> Conclusion<M, R> {
    fn conclude(self, memory: &mut M, outcome: Result<Outcome>) -> Result<R> {
        match self {
            Self::Apart(conclude) => conclude(outcome),
            Self::Within(conclude) => conclude(memory, outcome),
        }
    }
}

fn start_in_engine(job: &Job, begin: Begin, work: Work) -> Key {
    let key = job.shared().begin(begin, work);
    job.shared().nudge();
    key
}
