//! One driver per process: it owns the transports and turns the crank.
//!
//! Whoever waits for an operation turns the crank itself; when nothing moves it spins briefly, yields for some tens of
//! microseconds, then sleeps until a transport has work. One thread sleeps on the transports at a time, the others
//! on a condition variable, and are handed the crank when the sleeper leaves. A service thread sleeps there when no
//! caller does: timers, heartbeats, futures and answers to peers go on during long computation, at no cost.

mod brief;
mod core;
mod crank;
mod ledger;
mod patience;
mod service;
mod sleeper;
mod wires;

pub(crate) use self::core::Core;
pub(crate) use crank::Crank;
pub(crate) use ledger::Ledger;
pub(crate) use patience::{Next, Patience};
pub(crate) use wires::{Pace, Route, Wires};

use crate::Result;
use crate::buffer::{is_child, mark};
use crate::engine::{Begin, Engine, Key, Outcome, Process, Work};
use crank::Alarms;
use gradwire_transport::Activity;
use sleeper::Sleeper;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a process that leaves hands its last messages to the system.
const FAREWELL: Duration = Duration::from_secs(1);

/// The driver, and the thread that stands in for absent callers.
#[derive(Debug)]
pub(crate) struct Driver {
    shared: Arc<Shared>,
    service: Option<JoinHandle<()>>,
}

/// What callers and the service thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// What a forked child sees instead, in which all calls fail.
    orphaned: OnceLock<Mutex<Core>>,
    alarms: Arc<Alarms>,
    /// Rung when the crank is free, or somebody's operation may have ended.
    handed: Condvar,
    sleeper: Sleeper,
    /// Threads inside a blocking call that has begun to wait.
    callers: AtomicUsize,
    /// Threads that wait for the condition variable.
    waiting: AtomicUsize,
    stop: AtomicBool,
    /// More ranks than cores on this host: waiting threads give way at once.
    crowded: bool,
}

impl Driver {
    /// Takes over connected transports. `crowded`: ranks share cores.
    pub(crate) fn new(core: Core, crowded: bool, with_service: bool) -> Result<Self> {
        mark();
        let sleeper = Sleeper::new(&core.wires)?;
        let shared = Arc::new(Shared {
            alarms: core.alarms.clone(),
            core: Mutex::new(core),
            orphaned: OnceLock::new(),
            handed: Condvar::new(),
            sleeper,
            callers: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            crowded,
        });
        let service = if with_service { Some(service::spawn(&shared)?) } else { None };
        Ok(Self { shared, service })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Driver {
    /// Says goodbye and closes the connections in good order, within a bounded time. Nothing here waits for peers.
    fn drop(&mut self) {
        if is_child() {
            // Thread, connections and mappings are the parent's: nothing of them is closed here, not even by dropping it.
            std::mem::forget((self.shared.clone(), self.service.take()));
            return;
        }
        // Ordered with the service thread's claim: either it sees `stop`, or it is seen asleep here.
        self.shared.stop.store(true, Ordering::SeqCst);
        self.shared.sleeper.wake();
        self.shared.handed.notify_all();
        if let Some(service) = self.service.take() {
            // It has no way to panic that would not be a bug already reported.
            let _ = service.join();
        }
        let mut core = self.shared.lock();
        // Nothing comes after a goodbye.
        let end = Instant::now() + FAREWELL;
        while !core.engine.is_idle() && Instant::now() < end {
            if core.turn(Instant::now()) == Activity::Idle {
                std::thread::yield_now();
            }
        }
        let Core { engine, wires, .. } = &mut *core;
        engine.goodbye(wires);
        let end = Instant::now() + FAREWELL;
        while core.engine.has_mail() && Instant::now() < end {
            core.turn(Instant::now());
        }
        core.wires.disconnect_all();
        let mut quiet = 0;
        while (quiet < 2 || core.has_output()) && Instant::now() < end {
            quiet = if core.turn(Instant::now()) == Activity::Idle { quiet + 1 } else { 0 };
        }
    }
}

impl Shared {
    /// The crank.
    pub(crate) fn lock(&self) -> Crank<'_> {
        if is_child() {
            return self.orphaned();
        }
        Crank::take(&self.core, &self.alarms)
    }

    /// The lock on the core may be held for ever in a child, by a thread that is not there.
    #[cold]
    fn orphaned(&self) -> Crank<'_> {
        let core = self.orphaned.get_or_init(|| Mutex::new(Core::new(Engine::orphaned(), Wires::new(0))));
        Crank::take(core, &self.alarms)
    }

    /// Starts an operation. Whoever drives next goes on with it.
    pub(crate) fn begin(&self, begin: Begin, work: Work) -> Key {
        let mut core = self.lock();
        let Core { engine, wires, .. } = &mut *core;
        let key = engine.begin(begin, work, wires);
        core.collect();
        key
    }

    /// Whether an operation has ended. Turns the crank once.
    pub(crate) fn test(&self, key: Key) -> bool {
        let mut core = self.lock();
        core.turn(Instant::now());
        self.rearm(&mut core);
        core.has_result(key)
    }

    /// The result of an operation, or a wake-up call once there is one.
    pub(crate) fn poll(&self, key: Key, waker: &Waker) -> Option<Result<Outcome>> {
        let mut core = self.lock();
        core.turn(Instant::now());
        let result = core.take(key);
        if result.is_none() {
            core.wake_for(key, waker);
        }
        self.rearm(&mut core);
        result
    }

    /// Lets an operation go on by itself; `memory` is dropped after it.
    pub(crate) fn detach(&self, key: Key, memory: Box<dyn Any + Send>) {
        let spare = self.lock().detach(key, memory);
        drop(spare);
    }

    /// Lets an operation go on by itself, unless it has ended: then tells how.
    pub(crate) fn let_go(&self, key: Key) -> Result<()> {
        let mut core = self.lock();
        if let Some(result) = core.take(key) {
            return result.map(drop);
        }
        core.detach(key, Box::new(()));
        drop(core);
        self.nudge();
        Ok(())
    }

    /// Asks the engine something, after a turn of the crank.
    pub(crate) fn ask<R>(&self, question: impl FnOnce(&mut Engine, &mut Wires) -> R) -> R {
        let mut core = self.lock();
        core.turn(Instant::now());
        let Core { engine, wires, .. } = &mut *core;
        let answer = question(engine, wires);
        core.collect();
        self.rearm(&mut core);
        self.hand_on(&mut core);
        answer
    }

    /// Ends an operation, if it is still under way, and forgets its result.
    pub(crate) fn cancel(&self, key: Key) {
        let mut core = self.lock();
        let Core { engine, wires, .. } = &mut *core;
        engine.cancel(key, wires);
        core.collect();
        let _ = core.take(key);
    }

    /// Waits for an operation.
    pub(crate) fn wait(&self, key: Key) -> Result<Outcome> {
        self.wait_until(|core| core.take(key))
    }

    /// Turns the crank until `ended` has something. Its deadlines are the operations' own.
    pub(crate) fn wait_until<T>(&self, mut ended: impl FnMut(&mut Core) -> Option<T>) -> T {
        let _caller = self.enter();
        let mut patience = Patience::new(self.crowded);
        let mut core = self.lock();
        loop {
            if let Some(result) = ended(&mut core) {
                core.hand_over();
                self.hand_on(&mut core);
                return result;
            }
            if core.turn(Instant::now()) == Activity::Busy {
                patience.reset();
                continue;
            }
            self.hand_on(&mut core);
            match patience.next() {
                Next::Spin => std::hint::spin_loop(),
                Next::Yield => {
                    drop(core);
                    std::thread::yield_now();
                    core = self.lock();
                }
                Next::Sleep => core = self.sleep(core, None),
            }
        }
    }

    /// Tells others that something may have ended for them.
    pub(crate) fn hand_on(&self, core: &mut Core) {
        if core.concerns_others() {
            self.nudge();
        }
    }

    /// Counts a caller; the service thread keeps out of the way meanwhile.
    pub(crate) fn enter(&self) -> Caller<'_> {
        self.callers.fetch_add(1, Ordering::Relaxed);
        Caller { shared: self }
    }

    /// Sleeps until there may be something to do, but not beyond `limit`.
    pub(crate) fn sleep<'a>(&'a self, mut core: Crank<'a>, limit: Option<Instant>) -> Crank<'a> {
        let deadline = core.deadline().into_iter().chain(limit).min();
        if !self.sleeper.claim() {
            // Somebody sleeps on the transports already: the service thread makes room at once.
            self.sleeper.wake_if_service();
            self.rearm(&mut core);
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let timeout =
                deadline.map_or(Duration::from_secs(1), |at| at.saturating_duration_since(Instant::now()));
            core = core.wait(&self.handed, timeout);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return core;
        }
        if core.prepare_sleep() {
            core.sleeps_until = deadline;
            drop(core);
            self.sleeper.sleep(deadline);
            core = self.lock();
        }
        self.sleeper.leave();
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.handed.notify_all();
        }
        core
    }

    /// Whoever turns the crank takes over from the one who sleeps, as far as transports know: when he stops turning,
    /// peers must ring again, and what has become due must not wait.
    fn rearm(&self, core: &mut Core) {
        if self.sleeper.is_taken() && (!core.prepare_sleep() || core.oversleeps()) {
            self.sleeper.wake();
        }
    }

    /// Makes the thread that sleeps look around: something was started or ended elsewhere.
    pub(crate) fn nudge(&self) {
        self.sleeper.wake();
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.handed.notify_all();
        }
    }

    /// Something was posted, and its caller goes on without a turn: somebody else makes one soon.
    pub(crate) fn stir(&self, mut core: Crank<'_>) {
        let is_first = !std::mem::replace(&mut core.stirred, true);
        drop(core);
        if is_first {
            self.sleeper.wake();
            self.handed.notify_all();
        }
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Sends a message with nothing in it: it rings the bell of a process that sleeps.
    pub(crate) fn ring(&self, process: Process) {
        use crate::engine::Port;
        let _ = self.lock().wires.send(process, &[]);
    }
}

/// A thread inside a blocking call.
#[derive(Debug)]
pub(crate) struct Caller<'a> {
    shared: &'a Shared,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.shared.callers.fetch_sub(1, Ordering::Relaxed);
        let mut core = self.shared.lock();
        self.shared.rearm(&mut core);
        // Operations that nobody waits for go on in the service thread.
        if !core.engine.is_idle() {
            self.shared.handed.notify_all();
        }
    }
}
