//! Locks on the parts of other ranks, of which those know nothing.

use super::wait::{Needs, Waiting};
use super::{Window, bug, dropped};
use crate::driver::Core;
use crate::{Element, Rank, Result};
use std::fmt;

/// With whom a lock is shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// With everybody who shares it, too.
    Shared,
    /// With nobody.
    Exclusive,
}

/// A lock on the parts of some ranks, until it is [unlocked](Self::unlock) or dropped; made by [`Window::lock`] and
/// [`Window::lock_all`].
#[must_use = "the lock is given back when this is dropped"]
pub struct LockGuard<'a, T: Element> {
    window: &'a Window<T>,
    ranks: Vec<Rank>,
}

impl<T: Element> Window<T> {
    /// Waits for the lock on the part of `rank`. It keeps off other locks and nothing else: accesses need none. Locks are granted in
    /// the order they are asked for. A rank that holds a lock on a part and asks for it again gets an error.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, it has dropped its window, or this rank holds the lock; [`TimedOut`](crate::Error::TimedOut),
    /// [`PeerLost`](crate::Error::PeerLost), [`Aborted`](crate::Error::Aborted).
    pub fn lock(&self, rank: Rank, kind: Lock) -> Result<LockGuard<'_, T>> {
        self.check_rank(rank)?;
        let mut guard = LockGuard { window: self, ranks: Vec::with_capacity(1) };
        guard.add(rank, kind)?;
        Ok(guard)
    }

    /// Waits for the shared locks on the parts of all ranks, one after the other.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock).
    pub fn lock_all(&self) -> Result<LockGuard<'_, T>> {
        let mut guard = LockGuard { window: self, ranks: Vec::with_capacity(self.size()) };
        (0..self.size()).try_for_each(|rank| guard.add(rank, Lock::Shared))?;
        Ok(guard)
    }

    fn give_back(&self, ranks: &[Rank]) {
        let shared = self.communicator.job().shared();
        let mut core = shared.lock();
        let Core { engine, wires, .. } = &mut *core;
        ranks.iter().for_each(|rank| engine.unlock(self.communicator.id(), *rank, wires));
        shared.stir(core);
        let mut epochs = self.epochs.borrow_mut();
        epochs.locked.retain(|rank| !ranks.contains(rank));
    }
}

impl<T: Element> LockGuard<'_, T> {
    /// Returns once all accesses of this rank to the locked parts have been carried out, and gives the lock back: whoever gets it next
    /// sees them.
    ///
    /// # Errors
    ///
    /// Those of [`Window::flush`]. The lock is given back all the same.
    pub fn unlock(self) -> Result<()> {
        self.window.flush_ranks(&self.ranks)
    }

    fn add(&mut self, rank: Rank, kind: Lock) -> Result<()> {
        let window = self.window;
        window.check_open(rank)?;
        if window.epochs.borrow().locked.contains(&rank) {
            return Err(super::misuse(format!(
                "this rank holds the lock on the part of rank {rank} already"
            )));
        }
        let (shared, id) = (window.communicator.job().shared(), window.communicator.id());
        let mut core = shared.lock();
        let Core { engine, wires, .. } = &mut *core;
        let ticket = engine.lock(id, rank, kind == Lock::Exclusive, wires).ok_or_else(bug)?;
        shared.stir(core);
        // Also when waiting fails: then the drop of the guard tells the owner that we wait no longer.
        self.ranks.push(rank);
        window.epochs.borrow_mut().locked.push(rank);
        window.wait_until(&Waiting { call: "lock", needs: Needs::All(&|_| vec![rank]) }, |core| {
            let window = core.engine.window(id)?;
            match window.is_granted(rank, ticket) {
                true => Some(Ok(())),
                false => window.is_closed(rank).then(|| Err(dropped(rank))),
            }
        })
    }
}

impl<T: Element> Drop for LockGuard<'_, T> {
    /// Does not wait: what was written before is carried out before the lock is given on.
    fn drop(&mut self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.window.give_back(&self.ranks);
    }
}

impl<T: Element> fmt::Debug for LockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard").field("ranks", &self.ranks).finish_non_exhaustive()
    }
}
