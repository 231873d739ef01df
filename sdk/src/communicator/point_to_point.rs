//! Messages between two ranks.

use super::Communicator;
use super::call::misuse;
use super::memory::{packed, unpack};
use crate::buffer::{Private, lend, lend_briefly, lend_during, lend_shared};
use crate::engine::{Begin, Outcome, Pattern, Payload, Work};
use crate::{Error, Rank, Result};
use gradwire_schema::{CallSignature, Equivalence};
use std::time::{Duration, Instant};

/// Shorter deadlines than this are kept to the millisecond.
const BRIEF: Duration = Duration::from_millis(10);

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

/// Which message of a rank to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tag {
    /// One with this label.
    Only(u32),
    /// Whichever comes first.
    Any,
}

impl From<u32> for Tag {
    fn from(tag: u32) -> Self {
        Self::Only(tag)
    }
}

/// What was received, or waits to be.
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
    /// Sends values to a rank. Returns once `values` may be changed, which for long messages is when they were received,
    /// or refused because they did not fit there.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank; [`TimedOut`](Error::TimedOut) when a long message is
    /// not received in time: then it is withdrawn.
    pub fn send<T: Equivalence>(&self, values: &[T], to: Rank, tag: u32) -> Result<()> {
        self.send_lent(values, to, tag, false)
    }

    /// As [`send`](Self::send), but returns only once the receiver has begun to receive the message, however short it is.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send).
    pub fn synchronous_send<T: Equivalence>(&self, values: &[T], to: Rank, tag: u32) -> Result<()> {
        self.send_lent(values, to, tag, true)
    }

    /// Sends a copy of values to a rank, and returns at once. What cannot leave yet is kept in a buffer of
    /// [`send_buffer`](Self::send_buffer) bytes, as long as it takes: no deadline ends it. What is still there when the
    /// communicator is dropped goes on leaving; when the last handle to the job is, for another second.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank; [`BufferFull`](Error::BufferFull) when the message does not fit
    /// beside those that are kept.
    pub fn buffered_send<T: Equivalence>(&self, values: &[T], to: Rank, tag: u32) -> Result<()> {
        self.check_root(to)?;
        let payload = Payload::Buffered(Private::copy_of(&packed(values)), self.send_buffer());
        let work = Work::Send { to, tag, kind: T::FINGERPRINT, payload, synchronous: false };
        let shared = self.job.shared();
        shared.let_go(shared.begin(Begin { timeout: None, ..self.message() }, work))
    }

    /// How many bytes [`buffered_send`](Self::buffered_send) may keep at a time; at first 16 MiB.
    #[must_use]
    pub fn send_buffer(&self) -> usize {
        self.send_buffer.get()
    }

    /// Changes how many bytes [`buffered_send`](Self::buffered_send) may keep at a time. What is kept already stays.
    pub fn set_send_buffer(&self, bytes: usize) {
        self.send_buffer.set(bytes);
    }

    /// Receives a message into the beginning of `values`. Messages of one rank that fit the same receive are received in
    /// the order they were sent.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank, or the message is longer than the buffer or of another type
    /// (then it is lost, and the buffer untouched: who does not know what comes asks [`probe`](Self::probe), or
    /// takes a [`Message`](crate::Message)); [`TimedOut`](Error::TimedOut) when none comes in time.
    pub fn recv<T: Equivalence>(
        &self,
        values: &mut [T],
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Received> {
        let pattern = self.pattern(from.into(), tag.into())?;
        let work = Work::receive::<T>(pattern, None);
        receive_packed(values, |bytes| {
            // Whoever waits longer has a deadline, which only an operation keeps.
            if self.timeout.get().is_none_or(|timeout| timeout >= BRIEF)
                && let Some(head) = lend_briefly(self.job.shared(), self.id, pattern, T::FINGERPRINT, bytes)
            {
                return Ok((head.source, head.tag, head.len));
            }
            match lend(self.job.shared(), self.message(), bytes, work, |outcome, _| outcome)? {
                Outcome::Received { source, tag, len } => Ok((source, tag, len)),
                _ => Err(no_message()),
            }
        })
    }

    /// Receives a message into memory of its length, which is allocated once the length is known.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank, or the message is of another type;
    /// [`System`](Error::System) when there is no memory for it. In these cases the message stays where it is, for another
    /// receive. [`TimedOut`](Error::TimedOut) when none comes in time.
    pub fn recv_vec<T: Equivalence>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<(Vec<T>, Received)> {
        self.matched_probe(from, tag)?.recv_vec()
    }

    /// Sends values to one rank and receives others from the same or another one, both at once: ranks that do so in a ring,
    /// or with each other, do not wait for each other's receive.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send) and [`recv`](Self::recv). When one of the two fails the other may have succeeded.
    pub fn send_receive<S: Equivalence, R: Equivalence>(
        &self,
        values: &[S],
        to: Rank,
        send_tag: u32,
        received: &mut [R],
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Received> {
        self.check_root(to)?;
        let work = Work::receive::<R>(self.pattern(from.into(), tag.into())?, None);
        receive_packed(received, |bytes| {
            let send = || self.send(values, to, send_tag);
            match lend_during(self.job.shared(), self.message(), bytes, work, send)? {
                Outcome::Received { source, tag, len } => Ok((source, tag, len)),
                _ => Err(no_message()),
            }
        })
    }

    /// Sends values to one rank and replaces them by what another one sends, which may be shorter. The values are copied
    /// for it.
    ///
    /// # Errors
    ///
    /// Those of [`send_receive`](Self::send_receive).
    pub fn send_receive_replace<T: Equivalence>(
        &self,
        values: &mut [T],
        to: Rank,
        send_tag: u32,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Received> {
        let sent = values.to_vec();
        self.send_receive(&sent, to, send_tag, values, from, tag)
    }

    fn send_lent<T: Equivalence>(&self, values: &[T], to: Rank, tag: u32, synchronous: bool) -> Result<()> {
        self.check_root(to)?;
        let kind = T::FINGERPRINT;
        let bytes = packed(values);
        if !synchronous && self.job.shared().send_briefly(self.id, (to, tag, kind), &bytes) {
            return Ok(());
        }
        let work = |span| Work::Send { to, tag, kind, payload: Payload::Lent(span), synchronous };
        lend_shared(self.job.shared(), self.message(), &bytes, work)?;
        Ok(())
    }

    /// What a receive or a probe looks for, if there is such a rank.
    pub(super) fn pattern(&self, source: Source, tag: Tag) -> Result<Pattern> {
        let source = match source {
            Source::Rank(rank) => Some(self.check_root(rank).map(|()| rank)?),
            Source::Any => None,
        };
        let tag = match tag {
            Tag::Only(tag) => Some(tag),
            Tag::Any => None,
        };
        Ok(Pattern { source, tag })
    }

    pub(super) fn message(&self) -> Begin {
        Begin {
            group: self.id,
            sequence: 0,
            signature: CallSignature::new(gradwire_schema::Collective::PointToPoint),
            started: Instant::now(),
            timeout: self.timeout.get(),
        }
    }
}

impl Work {
    /// To receive values of `T`; `number`: a message that is held.
    pub(super) fn receive<T: Equivalence>(
        pattern: Pattern,
        number: Option<u64>,
    ) -> impl FnOnce(crate::buffer::Span) -> Self {
        let kind = T::FINGERPRINT;
        move |span| Self::Receive { pattern, number, kind, span }
    }
}

/// How many values of `T` these bytes are.
pub(super) fn count_of<T: Equivalence>(source: Rank, tag: u32, len: usize) -> Result<usize> {
    let size = T::PACKED_SIZE.max(1);
    if len.is_multiple_of(size) {
        return Ok(len / size);
    }
    Err(misuse(format!("the message of rank {source} with tag {tag} ends within an element")))
}

/// Receives into the packed form of values: their own memory where that is it, else a copy.
pub(super) fn receive_packed<T: Equivalence>(
    values: &mut [T],
    receive: impl FnOnce(&mut [u8]) -> Result<(Rank, u32, usize)>,
) -> Result<Received> {
    let received = |(source, tag, len)| Ok(Received { source, tag, count: count_of::<T>(source, tag, len)? });
    if let Some(bytes) = T::as_bytes_mut(values) {
        return receive(bytes).and_then(received);
    }
    let mut packed = vec![0; values.len() * T::PACKED_SIZE];
    let received = receive(&mut packed).and_then(received)?;
    let values =
        values.get_mut(..received.count).ok_or_else(|| misuse("the message is too long".to_owned()))?;
    unpack(&packed[..received.count * T::PACKED_SIZE], values)?;
    Ok(received)
}

pub(super) fn no_message() -> Error {
    Error::Bug("a receive ended without a message".into())
}
