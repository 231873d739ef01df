//! One error type, sorted by what the caller can do about it.

use crate::Rank;
use gradwire_schema::InvalidValue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The result of every call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, sorted by what the caller can do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rank is gone. Buffers of the call are unspecified, sources unchanged; the communicator only
    /// reports this error from now on. Start again with the survivors, or from a checkpoint.
    #[error("rank {rank} on {host} was lost: {reason}")]
    PeerLost {
        /// The first rank known to be lost.
        rank: Rank,
        /// Where it ran.
        host: Arc<str>,
        /// What its connection said.
        reason: Arc<str>,
    },
    /// The deadline of the call passed. Buffers as for `PeerLost`.
    #[error("{call} gave up after {waited:?}: waiting for {}", Ranks(waiting_for))]
    TimedOut {
        /// What was called.
        call: Call,
        /// How long it waited.
        waited: Duration,
        /// The ranks that have not called it, or that do not answer.
        waiting_for: Arc<[Rank]>,
    },
    /// The ranks called different things. No buffer was touched; the communicator is usable.
    #[error("the ranks called different things: {}{}", Calls(calls), Differing(field.as_deref()))]
    Mismatch {
        /// Each different call with the ranks that made it, most ranks first.
        calls: Arc<[(Call, Vec<Rank>)]>,
        /// For structs whose layouts differ: the first field that differs.
        field: Option<Arc<str>>,
    },
    /// The arguments make no sense. Nothing was sent, no buffer was touched.
    #[error("{0}")]
    Misuse(Arc<str>),
    /// A rank gave bytes that are no value of the type, as only a faulty or a hostile program does. The values are what
    /// they were before the call; the communicator is usable. The index tells the rank where results lie in rank order.
    #[error("element {index} of what the ranks gave is no value: {invalid}")]
    InvalidValue {
        /// Which element of the result, or of the message.
        index: usize,
        /// What is wrong with it.
        invalid: InvalidValue,
    },
    /// The buffer of buffered sends has no room for a message. Nothing was sent. Let the receivers catch up, send without a
    /// buffer, or make it larger with [`set_send_buffer`](crate::Communicator::set_send_buffer).
    #[error("a message of {len} bytes finds {free} free of the {limit} bytes for buffered sends")]
    BufferFull {
        /// Bytes of the message.
        len: usize,
        /// Bytes that are free.
        free: usize,
        /// Bytes of the whole buffer.
        limit: usize,
    },
    /// A setting is not understood or out of range. Nothing was started.
    #[error("{name} is {value:?}, but must be {allowed}")]
    Setting {
        /// The environment variable, or the field of the configuration.
        name: Arc<str>,
        /// What it is.
        value: Arc<str>,
        /// What it may be.
        allowed: Arc<str>,
    },
    /// The process could not find or reach its job.
    #[error("{0}")]
    Bootstrap(Arc<str>),
    /// A rank asked everyone to stop.
    #[error("rank {rank} aborted: {reason}")]
    Aborted {
        /// Who asked.
        rank: Rank,
        /// What it said.
        reason: Arc<str>,
    },
    /// The operating system refused something this library needs.
    #[error("{0}")]
    System(Arc<str>),
    /// A mistake in this library. Please report it.
    #[error("a bug in gradwire: {0}")]
    Bug(Arc<str>),
}

impl Error {
    /// The error of a call on a communicator with this name.
    pub(crate) fn on(mut self, name: Option<Arc<str>>) -> Self {
        let Some(name) = name else { return self };
        match &mut self {
            Self::TimedOut { call, .. } => call.communicator = Some(name),
            Self::Mismatch { calls, .. } => {
                let named = |(call, ranks): &(Call, Vec<Rank>)| {
                    (Call { communicator: Some(name.clone()), ..call.clone() }, ranks.clone())
                };
                *calls = calls.iter().map(named).collect();
            }
            _ => {}
        }
        self
    }
}

/// A call as its signature tells it: for messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// `all_reduce`, `broadcast`, ...
    pub name: Arc<str>,
    /// What distinguishes it: operation, datatype, count, root.
    pub arguments: Arc<str>,
    /// The how-manieth collective call on this communicator it was, from 0.
    pub sequence: u64,
    /// The communicator's name, if it was given one.
    pub communicator: Option<Arc<str>>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}) as call {}", self.name, self.arguments, self.sequence)?;
        self.communicator.as_ref().map_or(Ok(()), |name| write!(f, " on {name:?}"))
    }
}

/// Ranks for a message, ascending, with runs joined.
pub(crate) struct Ranks<'a>(pub(crate) &'a [Rank]);

impl fmt::Display for Ranks<'_> {
    /// `rank 3`, `ranks 0, 2-5, 9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        let mut rest = self.0;
        let mut separator = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().zip(first..).take_while(|(rank, expected)| *rank == expected).count();
            write!(f, "{separator}{first}")?;
            if run > 1 {
                write!(f, "-{}", first + run - 1)?;
            }
            separator = ", ";
            rest = &rest[run..];
        }
        Ok(())
    }
}

struct Differing<'a>(Option<&'a str>);

impl fmt::Display for Differing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |field| write!(f, "; the structs differ in {field}"))
    }
}

struct Calls<'a>(&'a [(Call, Vec<Rank>)]);

impl fmt::Display for Calls<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (call, ranks)) in self.0.iter().enumerate() {
            write!(f, "{}{} called {call}", if index == 0 { "" } else { "; " }, Ranks(ranks))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Ranks;

    #[test]
    fn ranks_are_compressed() {
        assert_eq!(Ranks(&[3]).to_string(), "rank 3");
        assert_eq!(Ranks(&[0, 2, 3, 4, 9]).to_string(), "ranks 0, 2-4, 9");
    }
}
