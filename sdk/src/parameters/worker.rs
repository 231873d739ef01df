//! The side that computes.

use super::{FromServer, FromWorker, Place, Staleness, Windows, misuse};
use crate::window::Raised;
use crate::{Arithmetic, Element, Error, Result};
use gradwire_schema::layout::{CheckError, Checked, Field, Tensor};
use gradwire_schema::{ConvertTo, FieldVisitor, Gradient, Reduction};
use std::ops::Range;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// Pushes gradients to the servers and pulls parameters from them.
///
/// A worker that is dropped, or whose process dies, without [`finish`](Self::finish) counts as lost: the servers go on without it, and with
/// all that it had pushed.
#[derive(Debug)]
pub struct Worker<T: Arithmetic> {
    place: Place,
    windows: Windows<T>,
    /// Which of the workers this is.
    index: usize,
    /// How many pushes may be ahead of the slowest worker's.
    ahead: u64,
    pushes: u64,
    /// By server.
    seen: Vec<Seen>,
}

/// What a server has told.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    /// How often the slot has been free.
    free: u64,
    /// Pushes that every worker has made.
    clock: u64,
}

impl<T: Arithmetic> Worker<T> {
    pub(super) fn new(place: Place, windows: Windows<T>, index: usize, staleness: Staleness) -> Self {
        let ahead = match staleness {
            Staleness::Synchronous => 0,
            Staleness::Bounded(steps) => steps as u64,
        };
        let seen = vec![Seen::default(); place.servers.len()];
        Self { place, windows, index, ahead, pushes: 0, seen }
    }

    /// How long a call may wait before it ends with [`Error::TimedOut`]: at first as long as one of the communicator. `None`: for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.windows.set_timeout(timeout);
    }

    /// How many parameters there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.place.shards.last().map_or(0, |shard| shard.end)
    }

    /// How often this worker has pushed.
    #[must_use]
    pub fn pushes(&self) -> u64 {
        self.pushes
    }

    /// Overwrites `parameters` with those of the servers, as soon as no worker is too far behind. Where workers are not in step the
    /// servers may be changing them meanwhile: each parameter is one that was valid, not all from the same moment.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when there are more or fewer parameters; [`TimedOut`](Error::TimedOut), after which it may be called again;
    /// [`PeerLost`](Error::PeerLost) when a server is gone.
    pub fn pull(&mut self, parameters: &mut [T]) -> Result<()> {
        self.check_count(parameters.len())?;
        self.wait_to_pull()?;
        self.read(0, parameters)
    }

    /// As [`pull`](Self::pull), into the tensors of a struct, in the order of its layout.
    ///
    /// # Errors
    ///
    /// Those of `pull`; [`Misuse`](Error::Misuse) when a tensor is of another datatype than the parameters.
    pub fn pull_gradient<G: Gradient>(&mut self, parameters: &mut G) -> Result<()> {
        self.check_count(visit(parameters, |_, _: &mut [T]| Ok(()))?)?;
        self.wait_to_pull()?;
        visit(parameters, |offset, values| self.read(offset, values)).map(drop)
    }

    /// Adds `gradient` to what the servers do next. Returns once it may be changed; waits while the push before it is still in the
    /// worker's slot.
    ///
    /// # Errors
    ///
    /// Those of [`pull`](Self::pull). Nothing has been pushed after `Misuse` and `TimedOut`.
    pub fn push(&mut self, gradient: &[T]) -> Result<()> {
        self.check_count(gradient.len())?;
        self.wait_to_push()?;
        self.write(0, gradient)?;
        self.announce(FromWorker::Dense)
    }

    /// As [`push`](Self::push), from the tensors of a struct, in the order of its layout: as they are in memory, whatever they would be
    /// on the wire of a collective. They are borrowed to be written because the visit of a struct shows them so, and unchanged.
    ///
    /// # Errors
    ///
    /// Those of `push`; [`Misuse`](Error::Misuse) when a tensor is of another datatype than the parameters.
    pub fn push_gradient<G: Gradient>(&mut self, gradient: &mut G) -> Result<()> {
        self.check_count(visit(gradient, |_, _: &mut [T]| Ok(()))?)?;
        self.wait_to_push()?;
        visit(gradient, |offset, values: &mut [T]| self.write(offset, values))?;
        self.announce(FromWorker::Dense)
    }

    /// As [`push`](Self::push), of a gradient that is zero but at some places: `values[i]` belongs to the parameter `indices[i]`. Values
    /// that name the same place add up.
    ///
    /// # Errors
    ///
    /// Those of `push`; [`Misuse`](Error::Misuse) when there are not as many values as indices, an index is outside, or one server would get
    /// more entries than [`Parameters::sparse`](super::Parameters::sparse) says.
    pub fn push_sparse(&mut self, indices: &[usize], values: &[T]) -> Result<()> {
        let shares = self.split(indices, values)?;
        self.wait_to_push()?;
        for (server, (indices, values)) in shares.iter().enumerate() {
            let rank = self.place.servers[server];
            self.windows.values.put(rank, self.place.slot(server, self.index), values)?;
            self.windows.indices.put(rank, self.place.entries(self.index), indices)?;
        }
        // The notice goes by the other window, and windows know nothing of each other.
        for rank in &self.place.servers {
            self.windows.indices.flush(*rank)?;
        }
        self.announce(FromWorker::Sparse)
    }

    /// Takes leave of the servers, once they have folded in all that was pushed.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](Error::TimedOut), [`PeerLost`](Error::PeerLost) when a server is gone.
    pub fn finish(mut self) -> Result<()> {
        for server in &self.place.servers {
            self.windows.values.put_notify(*server, 0, &[], FromWorker::Done.notice(self.index))?;
        }
        for server in 0..self.place.servers.len() {
            self.wait(server, FromServer::Bye)?;
        }
        Ok(())
    }

    fn wait_to_pull(&mut self) -> Result<()> {
        let needed = self.pushes.saturating_sub(self.ahead);
        for server in 0..self.seen.len() {
            while self.seen[server].free == 0 {
                self.seen[server].free += self.wait(server, FromServer::Free)?;
            }
            while self.seen[server].clock < needed {
                self.seen[server].clock += self.wait(server, FromServer::Clock)?;
            }
        }
        Ok(())
    }

    fn wait_to_push(&mut self) -> Result<()> {
        for server in 0..self.seen.len() {
            while self.seen[server].free <= self.pushes {
                self.seen[server].free += self.wait(server, FromServer::Free)?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, server: usize, word: FromServer) -> Result<u64> {
        let (rank, window) = (self.place.servers[server], &self.windows.values);
        match window.wait_notice_of(&[(word.notice(server), rank)])? {
            Raised::Notice { count, .. } => Ok(count),
            Raised::Gone(rank) => Err(window.lost(rank)),
        }
    }

    fn announce(&mut self, kind: FromWorker) -> Result<()> {
        for server in &self.place.servers {
            self.windows.values.put_notify(*server, 0, &[], kind.notice(self.index))?;
        }
        self.pushes += 1;
        Ok(())
    }

    /// Reads parameters from `offset` on, wherever they are kept.
    fn read(&self, offset: usize, values: &mut [T]) -> Result<()> {
        for (server, shard) in self.place.shards.iter().enumerate() {
            let (own, theirs) = overlap(shard, offset, values.len());
            self.windows.values.get(self.place.servers[server], theirs.start, &mut values[own])?;
        }
        Ok(())
    }

    /// Writes into this worker's slots what belongs to the parameters from `offset` on.
    fn write(&self, offset: usize, values: &[T]) -> Result<()> {
        for (server, shard) in self.place.shards.iter().enumerate() {
            let (own, theirs) = overlap(shard, offset, values.len());
            let slot = self.place.slot(server, self.index);
            self.windows.values.put(self.place.servers[server], slot + theirs.start, &values[own])?;
        }
        Ok(())
    }

    /// Entries by server: their number and their places in the shard, and the values.
    fn split(&self, indices: &[usize], values: &[T]) -> Result<Vec<(Vec<u32>, Vec<T>)>> {
        if indices.len() != values.len() {
            return Err(misuse(format!("{} values for {} indices", values.len(), indices.len())));
        }
        let mut shares = vec![(vec![0], Vec::new()); self.place.shards.len()];
        for (index, value) in indices.iter().zip(values) {
            let count = self.count();
            let server = self.place.shards.iter().position(|shard| shard.contains(index));
            let server = server
                .ok_or_else(|| misuse(format!("there is no parameter {index}: they are below {count}")))?;
            let (places, of_server) = &mut shares[server];
            places[0] += 1;
            places.push((index - self.place.shards[server].start) as u32);
            of_server.push(*value);
        }
        for (server, (_, values)) in shares.iter().enumerate() {
            let limit = self.place.sparse.min(self.place.shards[server].len());
            if values.len() > limit {
                let found = values.len();
                return Err(misuse(format!(
                    "{found} entries for one server, which has room for {limit}: push twice, or say \
                     Parameters::sparse({found}) on all ranks, up to the length of a shard"
                )));
            }
        }
        Ok(shares)
    }

    fn check_count(&self, found: usize) -> Result<()> {
        let count = self.count();
        if found == count {
            return Ok(());
        }
        Err(misuse(format!("{found} elements, but there are {count} parameters")))
    }
}

/// What the elements from `offset` on and a shard have in common: its place among them, and in the shard.
fn overlap(shard: &Range<usize>, offset: usize, len: usize) -> (Range<usize>, Range<usize>) {
    let start = shard.start.clamp(offset, offset + len);
    let end = shard.end.clamp(start, offset + len);
    let base = start.max(shard.start).min(shard.end);
    (start - offset..end - offset, base - shard.start..base - shard.start + (end - start))
}

/// Shows the tensors of a struct with where they begin among all its elements; how many those are.
fn visit<T: Element, G: Gradient>(
    gradient: &mut G,
    see: impl FnMut(usize, &mut [T]) -> Result<()>,
) -> Result<usize> {
    let mut visitor = Checked::new(G::LAYOUT, Flat { see, offset: 0, element: std::marker::PhantomData });
    let flawed = |error| match error {
        CheckError::Layout(error) => misuse(format!("the `Gradient` does not keep to its layout: {error}")),
        CheckError::Visitor(error) => error,
    };
    gradient.visit(&mut visitor).and_then(|()| visitor.finish()).map_err(flawed)?;
    Ok(visitor.into_inner().offset)
}

struct Flat<T, F> {
    see: F,
    offset: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Element, F: FnMut(usize, &mut [T]) -> Result<()>> FieldVisitor for Flat<T, F> {
    type Error = Error;

    fn tensor<U, W, R>(
        &mut self,
        field: &'static Field,
        _: &'static Tensor,
        values: &mut [U],
        _: &R,
    ) -> Result<()>
    where
        U: ConvertTo<W>,
        W: Element,
        R: Reduction<W>,
    {
        let len = values.len();
        let same =
            (U::DATATYPE == T::DATATYPE).then(|| <[T]>::mut_from_bytes(values.as_mut_bytes()).ok()).flatten();
        let Some(values) = same else {
            let (found, expected) = (U::DATATYPE.name(), T::DATATYPE.name());
            return Err(misuse(format!(
                "field `{}` is of {found}, but the parameters are of {expected}",
                field.name
            )));
        };
        (self.see)(self.offset, values)?;
        self.offset += len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn tensors_and_shards_overlap_in_part() {
        assert_eq!(overlap(&(10..20), 0, 30), (10..20, 0..10));
        assert_eq!(overlap(&(10..20), 12, 3), (0..3, 2..5));
        assert_eq!(overlap(&(10..20), 5, 10), (5..10, 0..5));
        assert_eq!(overlap(&(10..20), 15, 10), (0..5, 5..10));
        for (offset, len) in [(0, 10), (0, 3), (20, 5), (25, 5), (15, 0)] {
            let (own, theirs) = overlap(&(10..20), offset, len);
            assert!(own.is_empty() && theirs.is_empty() && theirs.end <= 10, "{offset} {len}");
            assert!(own.end <= len, "{offset} {len}");
        }
    }
}
