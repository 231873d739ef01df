//! Fences, and exposure to some ranks at a time: post, start, complete, wait.

use super::wait::{Needs, Waiting};
use super::{Window, dropped, misuse};
use crate::driver::Core;
use crate::{Element, Rank, Result, engine};
use gradwire_schema::{CallSignature, WindowRequest};

/// What tells the fences of [`Window::with_local`] from others: ranks that mix them get a mismatch.
pub(super) const LOCAL: u64 = 1;

/// Who takes part in what is under way.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// Whose parts this rank reaches for.
    started: Option<Vec<Rank>>,
    /// To whom its own part is open.
    posted: Option<Vec<Rank>>,
    /// On whose parts it holds a lock, or waits for one.
    pub(super) locked: Vec<Rank>,
}

impl<T: Element> Window<T> {
    /// Returns once all ranks have called it and all their accesses before it have been carried out. What they wrote is visible
    /// to all.
    ///
    /// # Errors
    ///
    /// Those of [`flush`](Self::flush) and of every collective.
    pub fn fence(&self) -> Result<()> {
        self.fence_as(0)
    }

    pub(super) fn fence_as(&self, kind: u64) -> Result<()> {
        self.flush_all()?;
        let call = CallSignature::new(gradwire_schema::Collective::WindowFence);
        self.communicator.tell_all(CallSignature { count: kind, ..call }, &[]).map(drop)
    }

    /// Opens this rank's part to `origins`, which call [`start`](Self::start). Does not wait.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when a rank does not exist or stands there twice, or the part is open already; why the window
    /// has ended, if it has.
    pub fn post(&self, origins: &[Rank]) -> Result<()> {
        self.check_ranks(origins)?;
        self.check_open(self.rank())?;
        let mut epochs = self.epochs.borrow_mut();
        if epochs.posted.is_some() {
            return Err(misuse(
                "the window's part is open already: `wait` comes before the next `post`".into(),
            ));
        }
        self.signal(origins, WindowRequest::Post);
        epochs.posted = Some(origins.to_vec());
        Ok(())
    }

    /// Returns once all of `targets` have opened their parts to this rank by [`post`](Self::post).
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when a rank does not exist or stands there twice, has dropped its window, or an epoch was started
    /// already; [`TimedOut`](crate::Error::TimedOut), [`PeerLost`](crate::Error::PeerLost), [`Aborted`](crate::Error::Aborted).
    pub fn start(&self, targets: &[Rank]) -> Result<()> {
        self.check_ranks(targets)?;
        self.check_open(self.rank())?;
        if self.epochs.borrow().started.is_some() {
            return Err(misuse(
                "an epoch was started already: `complete` comes before the next `start`".into(),
            ));
        }
        let needs = |window: &engine::Window| window.unposted(targets);
        self.wait_for("start", &needs, |window| window.take_posts(targets))?;
        self.epochs.borrow_mut().started = Some(targets.to_vec());
        Ok(())
    }

    /// Ends what [`start`](Self::start) began: returns once this rank's accesses have been carried out, and tells the targets so.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when nothing was started, and those of [`flush`](Self::flush), after which the epoch is still open.
    pub fn complete(&self) -> Result<()> {
        let mut epochs = self.epochs.borrow_mut();
        let nothing = || misuse("no epoch was started: `start` comes before `complete`".into());
        let targets = epochs.started.as_ref().ok_or_else(nothing)?;
        self.flush_ranks(targets)?;
        self.signal(targets, WindowRequest::Complete);
        epochs.started = None;
        Ok(())
    }

    /// Ends what [`post`](Self::post) began: returns once all origins have called [`complete`](Self::complete). What they wrote is
    /// visible.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when nothing was posted or an origin has dropped its window; [`TimedOut`](crate::Error::TimedOut), after
    /// which the part is still open, [`PeerLost`](crate::Error::PeerLost), [`Aborted`](crate::Error::Aborted).
    pub fn wait(&self) -> Result<()> {
        let mut epochs = self.epochs.borrow_mut();
        let nothing = || misuse("the window's part is not open: `post` comes before `wait`".into());
        let origins = epochs.posted.as_ref().ok_or_else(nothing)?;
        let needs = |window: &engine::Window| window.incomplete(origins);
        self.wait_for("wait", &needs, |window| window.take_completes(origins))?;
        epochs.posted = None;
        Ok(())
    }

    fn wait_for(
        &self,
        call: &'static str,
        needs: &dyn Fn(&engine::Window) -> Vec<Rank>,
        mut ready: impl FnMut(&mut engine::Window) -> bool,
    ) -> Result<()> {
        let id = self.communicator.id();
        self.wait_until(&Waiting { call, needs: Needs::All(needs) }, |core| {
            let window = core.engine.window(id)?;
            if ready(window) {
                return Some(Ok(()));
            }
            needs(window).into_iter().find(|rank| window.is_closed(*rank)).map(|rank| Err(dropped(rank)))
        })
    }

    fn signal(&self, ranks: &[Rank], word: WindowRequest) {
        let shared = self.communicator.job().shared();
        let mut core = shared.lock();
        let Core { engine, wires, .. } = &mut *core;
        ranks.iter().for_each(|rank| engine.signal(self.communicator.id(), *rank, word, wires));
        shared.stir(core);
    }

    fn check_ranks(&self, ranks: &[Rank]) -> Result<()> {
        for (index, rank) in ranks.iter().enumerate() {
            self.check_rank(*rank)?;
            if ranks[..index].contains(rank) {
                return Err(misuse(format!("rank {rank} stands twice in the list of ranks")));
            }
        }
        Ok(())
    }
}
