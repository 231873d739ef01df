//! Messages that have come and are not received yet.

use super::Communicator;
use super::call::misuse;
use super::memory::unpack;
use super::point_to_point::{Received, Source, Tag, count_of, no_message, receive_packed};
use crate::buffer::lend;
use crate::engine::{Begin, Found, GroupId, Outcome, Pattern, Probing, Work};
use crate::job::Job;
use crate::{Error, Rank, Result};
use gradwire_schema::{CallSignature, Equivalence};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Communicator {
    /// Waits for a message, and tells whose it is and how many elements of `T` it has, without receiving it.
    ///
    /// The next [`recv`](Self::recv) of this source and tag gets it, unless another thread receives it before: who shares
    /// messages out to threads takes [`matched_probe`](Self::matched_probe).
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank, or the message has elements of another type: it stays where it
    /// is. [`TimedOut`](Error::TimedOut) when none comes in time.
    pub fn probe<T: Equivalence>(&self, from: impl Into<Source>, tag: impl Into<Tag>) -> Result<Received> {
        let pattern = self.pattern(from.into(), tag.into())?;
        self.wait_for(Probing { pattern, hold: false }).and_then(|found| described::<T>(&found))
    }

    /// As [`probe`](Self::probe), without waiting: `None` when there is no message.
    ///
    /// # Errors
    ///
    /// Those of [`probe`](Self::probe); [`PeerLost`](Error::PeerLost) when the rank has left, so that none can come.
    pub fn test_probe<T: Equivalence>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Option<Received>> {
        let pattern = self.pattern(from.into(), tag.into())?;
        self.look(Probing { pattern, hold: false })?.map(|found| described::<T>(&found)).transpose()
    }

    /// Waits for a message, and holds it: only the [`Message`] that is returned can receive it.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank; [`TimedOut`](Error::TimedOut) when none comes in time.
    pub fn matched_probe(&self, from: impl Into<Source>, tag: impl Into<Tag>) -> Result<Message> {
        let pattern = self.pattern(from.into(), tag.into())?;
        self.wait_for(Probing { pattern, hold: true }).map(|found| Message::new(self, found))
    }

    /// As [`matched_probe`](Self::matched_probe), without waiting: `None` when there is no message.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there is no such rank; [`PeerLost`](Error::PeerLost) when it has left, so that no
    /// message can come.
    pub fn test_matched_probe(
        &self,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Option<Message>> {
        let pattern = self.pattern(from.into(), tag.into())?;
        Ok(self.look(Probing { pattern, hold: true })?.map(|found| Message::new(self, found)))
    }

    fn wait_for(&self, probing: Probing) -> Result<Found> {
        let shared = self.job.shared();
        match shared.wait(shared.begin(self.message(), Work::Probe(probing)))? {
            Outcome::Found(found) => Ok(found),
            _ => Err(no_message()),
        }
    }

    fn look(&self, probing: Probing) -> Result<Option<Found>> {
        self.job.shared().ask(|engine, _| engine.look(self.id, probing))
    }
}

/// A message that only its holder can receive; made by [`Communicator::matched_probe`].
///
/// Dropped without being received, it goes back to its place among the messages that wait, for any receive or probe.
#[must_use = "a message that is dropped goes back to those that wait"]
pub struct Message {
    job: Arc<Job>,
    group: GroupId,
    timeout: Option<Duration>,
    found: Found,
    /// It has not been received.
    held: bool,
}

impl Message {
    fn new(communicator: &Communicator, found: Found) -> Self {
        let (job, timeout) = (communicator.job.clone(), communicator.timeout.get());
        Self { job, group: communicator.id, timeout, found, held: true }
    }

    /// The sender.
    #[must_use]
    pub fn source(&self) -> Rank {
        self.found.source
    }

    /// The label the sender gave it.
    #[must_use]
    pub fn tag(&self) -> u32 {
        self.found.tag
    }

    /// How many elements of `T` it has.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when it has elements of another type.
    pub fn count<T: Equivalence>(&self) -> Result<usize> {
        described::<T>(&self.found).map(|received| received.count)
    }

    /// Receives it into the beginning of `values`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when it is longer than the buffer or of another type: it goes back to those that wait.
    /// [`TimedOut`](Error::TimedOut) when its bytes do not come within the timeout that the communicator had when it was found.
    pub fn recv<T: Equivalence>(mut self, values: &mut [T]) -> Result<Received> {
        let count = self.count::<T>()?;
        if count > values.len() {
            let Found { source, tag, .. } = self.found;
            return Err(misuse(format!(
                "the message of rank {source} with tag {tag} has {count} elements, the buffer {}: make it longer",
                values.len()
            )));
        }
        receive_packed(values, |bytes| self.receive::<T>(bytes))
    }

    /// Receives it into memory of its length.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when it is of another type, [`System`](Error::System) when there is no memory for it: it goes
    /// back to those that wait. [`TimedOut`](Error::TimedOut) as for [`recv`](Self::recv).
    pub fn recv_vec<T: Equivalence>(mut self) -> Result<(Vec<T>, Received)> {
        let count = self.count::<T>()?;
        if T::as_bytes_mut(&mut []).is_some() {
            // Any bytes are a value: also zeros.
            let zero =
                T::unpack(&vec![0; T::PACKED_SIZE]).map_err(|error| Error::Bug(error.to_string().into()))?;
            let mut values = filled(count, zero)?;
            let received = receive_packed(&mut values, |bytes| self.receive::<T>(bytes))?;
            values.truncate(received.count);
            return Ok((values, received));
        }
        let mut packed = filled(self.found.len, 0)?;
        let (source, tag, len) = self.receive::<T>(&mut packed)?;
        let values = unpacked(packed.get(..len).unwrap_or_default())?;
        let received = Received { source, tag, count: values.len() };
        Ok((values, received))
    }

    fn receive<T: Equivalence>(&mut self, bytes: &mut [u8]) -> Result<(Rank, u32, usize)> {
        self.held = false;
        let begin = Begin {
            group: self.group,
            sequence: 0,
            signature: CallSignature::new(gradwire_schema::Collective::PointToPoint),
            started: Instant::now(),
            timeout: self.timeout,
        };
        // If its sender withdraws it meanwhile the next one like it takes its place.
        let pattern = Pattern { source: Some(self.found.source), tag: Some(self.found.tag) };
        let work = Work::receive::<T>(pattern, Some(self.found.number));
        match lend(self.job.shared(), begin, bytes, work, |outcome, _| outcome)? {
            Outcome::Received { source, tag, len } => Ok((source, tag, len)),
            _ => Err(no_message()),
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if self.held {
            let (group, number) = (self.group, self.found.number);
            self.job.shared().ask(|engine, wires| engine.let_go(group, number, wires));
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("source", &self.found.source)
            .field("tag", &self.found.tag)
            .finish_non_exhaustive()
    }
}

/// What is known of a message, if its elements are of type `T`.
fn described<T: Equivalence>(found: &Found) -> Result<Received> {
    let Found { source, tag, kind, len, .. } = *found;
    if kind != T::FINGERPRINT {
        return Err(misuse(format!(
            "the message of rank {source} with tag {tag} has elements of another type than `{}`: ask for the sender's type",
            std::any::type_name::<T>()
        )));
    }
    Ok(Received { source, tag, count: count_of::<T>(source, tag, len)? })
}

/// As many copies as a peer has asked for, if there is memory for them.
fn filled<V: Copy>(count: usize, value: V) -> Result<Vec<V>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<V>());
        Error::System(format!("there is no memory for a message of {bytes} bytes").into())
    })?;
    values.resize(count, value);
    Ok(values)
}

/// Values from their packed form.
fn unpacked<T: Equivalence>(packed: &[u8]) -> Result<Vec<T>> {
    let size = T::PACKED_SIZE.max(1);
    let Some(first) = packed.get(..size) else { return Ok(Vec::new()) };
    let first = T::unpack(first).map_err(|invalid| Error::InvalidValue { index: 0, invalid })?;
    let mut values = filled(packed.len() / size, first)?;
    unpack(packed, &mut values)?;
    Ok(values)
}
