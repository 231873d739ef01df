//! Waiting for what other ranks do to, or answer about, a window.

use super::{Window, bug, name_of};
use crate::driver::{Core, Next, Patience};
use crate::{Call, Element, Error, Rank, Result, engine};
use gradwire_transport::Activity;
use std::time::Instant;

/// What a call waits for.
pub(super) struct Waiting<'a> {
    /// The method.
    pub(super) call: &'static str,
    pub(super) needs: Needs<'a>,
}

/// Whose part in a call is still to come.
pub(super) enum Needs<'a> {
    /// It cannot end without each of these.
    All(&'a dyn Fn(&engine::Window) -> Vec<Rank>),
    /// One of these is enough.
    Any(&'a dyn Fn(&engine::Window) -> Vec<Rank>),
}

impl<T: Element> Window<T> {
    /// Turns the crank until `ready` has a result. When it comes to its deadline, that ends the call and not the window.
    pub(super) fn wait_until<R>(
        &self,
        waiting: &Waiting<'_>,
        mut ready: impl FnMut(&mut Core) -> Option<Result<R>>,
    ) -> Result<R> {
        let shared = self.communicator.job().shared();
        if let Some(result) = ready(&mut shared.lock()) {
            return result;
        }
        let started = Instant::now();
        let deadline = self.timeout().and_then(|timeout| started.checked_add(timeout));
        let _caller = shared.enter();
        let mut patience = Patience::new(shared.is_crowded());
        let mut core = shared.lock();
        loop {
            if core.turn(Instant::now()) == Activity::Busy {
                patience.reset();
            }
            // What came may be meant for another thread.
            shared.hand_on(&mut core);
            if let Some(result) = ready(&mut core) {
                return result;
            }
            self.give_up(&mut core, waiting, started, deadline)?;
            match patience.next() {
                Next::Spin => std::hint::spin_loop(),
                Next::Yield => {
                    drop(core);
                    std::thread::yield_now();
                    core = shared.lock();
                }
                Next::Sleep => {
                    self.own().set_parked(true);
                    let result = ready(&mut core);
                    if result.is_none() {
                        core = shared.sleep(core, deadline);
                    }
                    self.own().set_parked(false);
                    if let Some(result) = result {
                        return result;
                    }
                }
            }
        }
    }

    /// Looks for a reason not to wait any longer.
    fn give_up(
        &self,
        core: &mut Core,
        waiting: &Waiting<'_>,
        started: Instant,
        deadline: Option<Instant>,
    ) -> Result<()> {
        let id = self.communicator.id();
        let now = Instant::now();
        let late = deadline.is_some_and(|deadline| deadline <= now);
        if late || core.engine.anybody_left() {
            let (Needs::All(needs) | Needs::Any(needs)) = waiting.needs;
            let needed = needs(core.engine.window(id).ok_or_else(bug)?);
            let is_there = |rank: &Rank| !core.engine.has_left(self.communicator.members()[*rank]);
            if matches!(waiting.needs, Needs::All(_)) || !needed.iter().any(is_there) {
                self.check_presence(core, &needed)?;
            }
            if late {
                return Err(Error::TimedOut {
                    call: Call {
                        name: waiting.call.into(),
                        arguments: name_of(T::DATATYPE).into(),
                        sequence: 0,
                        communicator: None,
                    },
                    waited: now - started,
                    waiting_for: needed.into(),
                });
            }
        }
        self.fault(core)
    }

    /// Ends the window if one of these ranks has gone.
    pub(super) fn check_presence(&self, core: &mut Core, ranks: &[Rank]) -> Result<()> {
        let Core { engine, wires, .. } = &mut *core;
        if engine.anybody_left() {
            engine.check_presence(self.communicator.id(), self.communicator.calls(), ranks, wires);
            core.collect();
            self.communicator.job().shared().hand_on(core);
        }
        self.fault(core)
    }

    /// Why the window has ended, if it has.
    fn fault(&self, core: &Core) -> Result<()> {
        core.engine.fault(self.communicator.id(), self.communicator.calls()).map_or(Ok(()), Err)
    }
}
