//! What is behind the driver's lock: the engine, the transports, and the results nobody has fetched yet.

use super::crank::Alarms;
use super::wires::Wires;
use crate::Error;
use crate::engine::{Engine, Key, Outcome, Process};
use gradwire_transport::{Activity, Event, EventRef, Events};
use rustc_hash::FxHashMap as HashMap;
use std::any::Any;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long a process that gives up hands what the others must know to the system, at most. A peer that takes nothing for
/// so long is in trouble itself.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Turned by one thread at a time.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) engine: Engine,
    pub(crate) wires: Wires,
    events: Events,
    results: HashMap<Key, Result<Outcome, Error>>,
    wakers: HashMap<Key, Waker>,
    /// Tasks to be woken once the core is free.
    pub(super) alarms: Arc<Alarms>,
    /// Operations whose results nobody wants, with what must live until they have ended.
    detached: HashMap<Key, Box<dyn Any + Send>>,
    /// A transport broke as a whole.
    broken: Option<Error>,
    /// Lost processes that the engine has not heard of.
    losses: Vec<(Process, Arc<str>)>,
    /// A wake-up call came, for whichever thread sleeps.
    rung: bool,
    /// When the thread that sleeps on the transports wakes by itself; `None`: never.
    pub(super) sleeps_until: Option<Instant>,
    /// Something was posted since the last turn, and whoever sleeps has been told.
    pub(super) stirred: bool,
}

impl Core {
    pub(crate) fn new(engine: Engine, wires: Wires) -> Self {
        Self {
            engine,
            wires,
            events: Events::new(),
            results: HashMap::default(),
            wakers: HashMap::default(),
            alarms: Arc::default(),
            detached: HashMap::default(),
            broken: None,
            losses: Vec::new(),
            rung: false,
            sleeps_until: None,
            stirred: false,
        }
    }

    /// One turn of the crank: whatever has arrived is handled, whatever can be sent is sent.
    pub(crate) fn turn(&mut self, now: Instant) -> Activity {
        self.stirred = false;
        let activity = self.move_and_lose(now);
        if self.engine.has_finished() && self.has_output() {
            // Whoever waited for it may now compute for long, or end the process: what it owes others leaves first.
            self.move_and_lose(now);
        }
        self.collect();
        activity
    }

    /// Goes on until the system has taken what calls that have ended still owe others. Not while other calls are under way:
    /// those see to it themselves.
    pub(crate) fn hand_over(&mut self) {
        let end = Instant::now() + LAST_WORDS;
        while self.engine.has_ended_all() && self.has_output() && Instant::now() < end {
            if self.turn(Instant::now()) == Activity::Idle {
                std::thread::yield_now();
            }
        }
    }

    fn move_and_lose(&mut self, now: Instant) -> Activity {
        let activity = self.move_all(now);
        if !self.losses.is_empty() {
            // A process may have ended because of a first cause that somebody has told us by now: that one counts.
            let losses = std::mem::take(&mut self.losses);
            self.move_all(now);
            for (process, reason) in losses {
                self.engine.lost(process, reason, &mut self.wires);
            }
        }
        activity
    }

    /// Whoever hears of a fault may end the process: what the others must know leaves first.
    fn speak_out(&mut self) {
        if !self.engine.take_alarm() {
            return;
        }
        let end = Instant::now() + LAST_WORDS;
        loop {
            let now = Instant::now();
            self.move_and_lose(now);
            if !self.engine.take_alarm() && !self.has_output() || now >= end {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Whether something is still to be handed to the system.
    pub(crate) fn has_output(&self) -> bool {
        self.engine.has_mail() || self.wires.carriers.iter().any(|carrier| carrier.transport.has_output())
    }

    fn move_all(&mut self, now: Instant) -> Activity {
        self.engine.set_now(now);
        self.wires.take_returns();
        let mut activity = Activity::Idle;
        for index in 0..self.wires.carriers.len() {
            self.events.clear();
            match self.wires.carriers[index].transport.progress(now, &mut self.events) {
                Ok(moved) => activity = activity.or(moved),
                Err(error) => self.break_down(&error),
            }
            let events = std::mem::take(&mut self.events);
            if !events.is_empty() {
                activity = Activity::Busy;
                events.iter().for_each(|event| self.handle(index, &event));
            }
            self.events = events;
        }
        if activity == Activity::Busy {
            self.engine.advance_all(&mut self.wires);
        }
        if self.engine.deadline().is_some_and(|deadline| deadline <= now) {
            self.engine.tick(now, &mut self.wires);
            activity = Activity::Busy;
        }
        activity
    }

    /// Sorts finished operations to those who wait for them. Called after everything that may end one.
    pub(crate) fn collect(&mut self) {
        self.speak_out();
        for (key, result) in self.engine.finished() {
            if self.detached.remove(&key).is_some() {
                continue;
            }
            self.results.insert(key, result);
            if let Some(waker) = self.wakers.remove(&key) {
                self.alarms.set(waker);
            }
        }
        self.rung |= self.engine.take_window_news();
    }

    /// The result of an operation, once.
    pub(crate) fn take(&mut self, key: Key) -> Option<Result<Outcome, Error>> {
        self.results.remove(&key).or_else(|| self.broken.clone().map(Err))
    }

    /// Whether other threads than the one that turned the crank may have something to look at.
    pub(crate) fn concerns_others(&mut self) -> bool {
        std::mem::take(&mut self.rung) || !self.results.is_empty()
    }

    /// Wakes a task when the operation has ended.
    pub(crate) fn wake_for(&mut self, key: Key, waker: &Waker) {
        self.wakers.insert(key, waker.clone());
    }

    /// Whether all calls fail, since a transport broke as a whole.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    pub(crate) fn has_result(&self, key: Key) -> bool {
        self.results.contains_key(&key) || self.broken.is_some()
    }

    /// Nobody will ask for the result; `memory` is dropped once the operation has ended, and comes back if it has.
    pub(crate) fn detach(&mut self, key: Key, memory: Box<dyn Any + Send>) -> Option<Box<dyn Any + Send>> {
        self.wakers.remove(&key);
        if self.results.remove(&key).is_some() {
            return Some(memory);
        }
        self.detached.insert(key, memory);
        None
    }

    /// When the crank must be turned even if nothing arrives.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let transports = self.wires.carriers.iter().filter_map(|carrier| carrier.transport.deadline());
        transports.chain(self.engine.deadline()).min()
    }

    /// Whether the thread that sleeps would sleep too long: something is due earlier than when it fell asleep.
    pub(super) fn oversleeps(&self) -> bool {
        self.deadline().is_some_and(|due| self.sleeps_until.is_none_or(|until| due < until))
    }

    /// Tells the transports that this thread will sleep. `false`: do not.
    pub(crate) fn prepare_sleep(&mut self) -> bool {
        self.wires.carriers.iter_mut().all(|carrier| carrier.transport.prepare_sleep())
    }

    fn handle(&mut self, carrier: usize, event: &EventRef<'_>) {
        let (engine, wires) = (&mut self.engine, &mut self.wires);
        match event {
            EventRef::Received(peer, _, bytes) => {
                if bytes.is_empty() {
                    self.rung = true;
                } else if let Some(process) = wires.process(carrier, *peer) {
                    engine.receive(process, bytes, wires);
                }
            }
            EventRef::Other(Event::Notified(peer, notice)) => {
                if let Some(process) = wires.process(carrier, *peer) {
                    engine.notified(process, *notice, wires);
                }
            }
            // A put may fail after its bytes were used: the peer has ended its call and left before it could say so. Where
            // they were not, the loss of the peer follows.
            EventRef::Other(Event::Done(token) | Event::Failed(token, _)) => engine.put_done(*token, wires),
            EventRef::Other(Event::PeerLost(peer, reason)) => {
                if let Some(process) = wires.process(carrier, *peer) {
                    self.losses.push((process, reason.to_string().into()));
                }
            }
            other => tracing::trace!(?other, "transport event"),
        }
    }

    fn break_down(&mut self, error: &gradwire_transport::TransportError) {
        if self.broken.is_none() {
            tracing::error!(%error, "a transport broke");
            self.broken = Some(Error::System(format!("a transport broke: {error}").into()));
        }
    }
}
