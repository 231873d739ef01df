//! The side that keeps the parameters.

use super::{FromServer, FromWorker, KINDS, Place, Staleness, Windows, misuse};
use crate::window::Raised;
use crate::{Arithmetic, Error, Rank, Result, Sum, reduce_local};
use std::ops::Range;
use std::time::Duration;

/// Elements of a slot that are read and added at once: few enough to stay in the cache.
const BLOCK: usize = 8 << 10;

/// Keeps a shard of the parameters.
#[derive(Debug)]
pub struct Server<T: Arithmetic> {
    place: Place,
    windows: Windows<T>,
    /// Which of the servers this is.
    index: usize,
    staleness: Staleness,
    workers: Vec<State>,
}

/// What is known of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    presence: Presence,
    pushes: u64,
    /// What lies in its slot, not folded in yet.
    waiting: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    There,
    Done,
    Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Dense,
    Sparse,
}

/// What the parameters are changed by in one step.
#[derive(Debug)]
pub struct Push<'a, T> {
    /// The sum of what the workers have pushed, for this server's shard.
    pub gradient: &'a [T],
    /// How many workers' pushes it is the sum of.
    pub workers: usize,
    /// Which step this is, from 0.
    pub step: u64,
}

/// How serving ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Served {
    /// How often the parameters were changed.
    pub steps: u64,
    /// The workers that left without a word, in the order of their loss.
    pub lost: Vec<Rank>,
}

impl<T: Arithmetic> Server<T> {
    pub(super) fn new(place: Place, windows: Windows<T>, index: usize, staleness: Staleness) -> Self {
        let state = State { presence: Presence::There, pushes: 0, waiting: None };
        let workers = vec![state; place.workers.len()];
        Self { place, windows, index, staleness, workers }
    }

    /// Which of the parameters this server keeps.
    #[must_use]
    pub fn shard(&self) -> Range<usize> {
        self.place.shards[self.index].clone()
    }

    /// How long a call may wait before it ends with [`Error::TimedOut`]: at first as long as one of the communicator. `None`: for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.windows.set_timeout(timeout);
    }

    /// Serves until all workers have taken leave or are lost. `parameters` are what the workers pull first, and what `update` has made
    /// of them at the end.
    ///
    /// Workers in step: a step is made when all workers that are left have pushed, of the sum in the order of their ranks. A worker
    /// that is lost counts in its last step if its push was complete. Otherwise: each push is a step, in the order in which they come.
    ///
    /// # Errors
    ///
    /// [`Misuse`](Error::Misuse) when `parameters` are not as many as the [`shard`](Self::shard) has;
    /// [`TimedOut`](Error::TimedOut), naming the workers that have not pushed; [`Aborted`](Error::Aborted).
    pub fn serve(
        mut self,
        parameters: &mut [T],
        mut update: impl FnMut(&mut [T], Push<'_, T>),
    ) -> Result<Served> {
        let (found, shard) = (parameters.len(), self.shard());
        if found != shard.len() {
            return Err(misuse(format!("{found} parameters, but the shard has {}: {shard:?}", shard.len())));
        }
        let mut served = Served::default();
        let mut gradient = vec![T::default(); shard.len()];
        self.windows.values.store(0, parameters)?;
        for worker in 0..self.workers.len() {
            self.tell(worker, FromServer::Free, 1)?;
        }
        while self.workers.iter().any(|worker| worker.presence == Presence::There) {
            let awaited = self.awaited();
            if !awaited.is_empty() {
                self.hear(&awaited, &mut served)?;
            }
            if !self.is_step_complete() {
                continue;
            }
            let pushed: Vec<usize> =
                (0..self.workers.len()).filter(|worker| self.workers[*worker].waiting.is_some()).collect();
            gradient.fill(T::default());
            for worker in &pushed {
                self.fold(*worker, &mut gradient)?;
            }
            let push = Push { gradient: &gradient, workers: pushed.len(), step: served.steps };
            update(parameters, push);
            served.steps += 1;
            self.windows.values.store(0, parameters)?;
            self.publish(&pushed)?;
        }
        Ok(served)
    }

    /// The notices to wait for, each with who raises it. A worker whose push waits is not to be heard of.
    fn awaited(&self) -> Vec<(usize, Rank)> {
        let states = self.workers.iter().enumerate();
        let silent = states
            .filter(|(_, worker)| worker.presence == Presence::There && worker.waiting.is_none())
            .map(|(index, _)| index);
        silent
            .flat_map(|worker| FromWorker::ALL.map(|kind| (kind.notice(worker), self.place.workers[worker])))
            .collect()
    }

    /// Waits for a word of a worker.
    fn hear(&mut self, awaited: &[(usize, Rank)], served: &mut Served) -> Result<()> {
        match self.windows.values.wait_notice_of(awaited)? {
            Raised::Notice { notice, .. } => {
                let worker = notice / KINDS;
                let kind = [Some(Kind::Dense), Some(Kind::Sparse), None][notice % KINDS];
                self.workers[worker].waiting = kind;
                match kind {
                    Some(_) => self.workers[worker].pushes += 1,
                    None => {
                        self.tell(worker, FromServer::Bye, 1)?;
                        self.leave(worker, Presence::Done)?;
                    }
                }
            }
            Raised::Gone(rank) => {
                if let Some(worker) = self.place.workers.iter().position(|worker| *worker == rank) {
                    tracing::warn!("worker {rank} is gone: going on without it");
                    served.lost.push(rank);
                    self.leave(worker, Presence::Lost)?;
                }
            }
        }
        Ok(())
    }

    fn is_step_complete(&self) -> bool {
        let mut there = self.workers.iter().filter(|worker| worker.presence == Presence::There);
        let anything = self.workers.iter().any(|worker| worker.waiting.is_some());
        anything && (self.staleness != Staleness::Synchronous || there.all(|worker| worker.waiting.is_some()))
    }

    /// A worker that has left holds up no other.
    fn leave(&mut self, worker: usize, presence: Presence) -> Result<()> {
        let before = self.clock();
        self.workers[worker].presence = presence;
        self.advance(before)
    }

    /// Pushes that every worker has made and that are folded in.
    fn clock(&self) -> Option<u64> {
        let there = self.workers.iter().filter(|worker| worker.presence == Presence::There);
        there.map(|worker| worker.pushes - u64::from(worker.waiting.is_some())).min()
    }

    /// The pushes of these workers are in the parameters: their slots are free.
    fn publish(&mut self, pushed: &[usize]) -> Result<()> {
        let before = self.clock();
        for worker in pushed {
            self.workers[*worker].waiting = None;
            self.tell(*worker, FromServer::Free, 1)?;
        }
        self.advance(before)
    }

    fn advance(&self, before: Option<u64>) -> Result<()> {
        let (Some(before), Some(now)) = (before, self.clock()) else { return Ok(()) };
        (0..self.workers.len()).try_for_each(|worker| self.tell(worker, FromServer::Clock, now - before))
    }

    fn tell(&self, worker: usize, word: FromServer, times: u64) -> Result<()> {
        if self.workers[worker].presence != Presence::There {
            return Ok(());
        }
        for _ in 0..times {
            match self.windows.values.put_notify(self.place.workers[worker], 0, &[], word.notice(self.index))
            {
                // It has gone meanwhile: heard of by and by, where others are not kept waiting.
                Ok(()) | Err(Error::Misuse(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Adds what a worker has pushed.
    fn fold(&self, worker: usize, sum: &mut [T]) -> Result<()> {
        let slot = self.place.slot(self.index, worker);
        match self.workers[worker].waiting {
            Some(Kind::Dense) => {
                let mut block = vec![T::default(); BLOCK.min(sum.len())];
                for (index, sum) in sum.chunks_mut(BLOCK).enumerate() {
                    let block = &mut block[..sum.len()];
                    self.windows.values.load(slot + index * BLOCK, block)?;
                    reduce_local(block, sum, Sum)?;
                }
            }
            Some(Kind::Sparse) => self.fold_sparse(worker, slot, sum)?,
            None => {}
        }
        Ok(())
    }

    fn fold_sparse(&self, worker: usize, slot: usize, sum: &mut [T]) -> Result<()> {
        let rank = self.place.workers[worker];
        let odd = || Error::Bug(format!("rank {rank} has pushed entries that no worker writes").into());
        let (entries, mut count) = (self.place.entries(worker), [0]);
        self.windows.indices.load(entries, &mut count)?;
        let count = count[0] as usize;
        if count > self.place.sparse.min(sum.len()) {
            return Err(odd());
        }
        let (mut places, mut values) = (vec![0; count], vec![T::default(); count]);
        self.windows.indices.load(entries + 1, &mut places)?;
        self.windows.values.load(slot, &mut values)?;
        for (place, value) in places.iter().zip(&values) {
            let sum = sum.get_mut(*place as usize).ok_or_else(odd)?;
            reduce_local(std::slice::from_ref(value), std::slice::from_mut(sum), Sum)?;
        }
        Ok(())
    }
}
