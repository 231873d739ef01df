//! Messages between two ranks.

use super::Communicator;
use super::call::misuse;
use super::memory::{pack, unpack};
use crate::buffer::lend;
use crate::engine::{Begin, Outcome, Pattern, Work};
use crate::{Error, Rank, Result};
use gradwire_schema::{CallSignature, Equivalence};
use std::time::Instant;

/// Whose message to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// That of one rank.
    Rank(Rank),
    /// Whichever comes first.
    Any,
}

impl From<Rank> for Source {
    fn from(rank: Rank) -> Self {
        Self::Rank(rank)
    }
}

/// What was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The sender.
    pub source: Rank,
    /// The label the sender gave it.
    pub tag: u32,
    /// Elements.
    pub count: usize,
}

impl Communicator {
    /// Sends values to a rank. Returns once `values` may be changed, which for long messages is when they were received.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank; [`TimedOut`](Error::TimedOut) when a long message is
    /// not received in time.
    pub fn send<T: Equivalence>(&self, values: &[T], to: Rank, tag: u32) -> Result<()> {
        self.check_root(to)?;
        // The engine reads through the same kind of span that it writes through: a copy keeps the caller's memory const.
        let mut bytes = pack(values);
        let kind = T::FINGERPRINT;
        let work = |span| Work::Send { to, tag, kind, span };
        lend(self.job.shared(), self.message(), &mut bytes, work, |_, _| ())
    }

    /// Receives a message with the tag into the beginning of `values`. Messages of one rank with one tag arrive in the
    /// order they were sent.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank, or the message is longer than the buffer or of
    /// another type (then it is lost, and the buffer untouched); [`TimedOut`](Error::TimedOut) when none comes in time.
    pub fn recv<T: Equivalence>(
        &self,
        values: &mut [T],
        from: impl Into<Source>,
        tag: u32,
    ) -> Result<Received> {
        let source = match from.into() {
            Source::Rank(rank) => Some(self.check_root(rank).map(|()| rank)?),
            Source::Any => None,
        };
        let pattern = Pattern { source, tag: Some(tag) };
        let kind = T::FINGERPRINT;
        let size = T::PACKED_SIZE.max(1);
        let work = |span| Work::Receive { pattern, kind, span };
        let receive =
            |bytes: &mut [u8]| match lend(self.job.shared(), self.message(), bytes, work, |outcome, _| {
                outcome
            })? {
                Outcome::Received { source, tag, len } => Ok(Received { source, tag, count: len / size }),
                _ => Err(Error::Bug("a receive ended without a message".into())),
            };
        if let Some(bytes) = T::as_bytes_mut(values) {
            return receive(bytes);
        }
        let mut packed = vec![0; values.len() * T::PACKED_SIZE];
        let received = receive(&mut packed)?;
        let values =
            values.get_mut(..received.count).ok_or_else(|| misuse("the message is too long".to_owned()))?;
        unpack(&packed[..received.count * T::PACKED_SIZE], values)?;
        Ok(received)
    }

    fn message(&self) -> Begin {
        Begin {
            group: self.id,
            sequence: 0,
            signature: CallSignature::new(gradwire_schema::Collective::PointToPoint),
            started: Instant::now(),
            timeout: self.timeout.get(),
        }
    }
}
