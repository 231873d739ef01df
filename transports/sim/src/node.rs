//! One endpoint, as the network knows it.

use crate::address::NodeIndex;
use crate::parcel::{Order, Parcel};
use crate::random::Random;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Bound;
use std::os::unix::net::UnixStream;
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) alive: bool,
    pub(crate) random: Random,
    /// When its port can take the next parcel; the past when it can now.
    pub(crate) out_free: Option<Instant>,
    /// When the last byte under way to it has passed its port.
    pub(crate) in_free: Option<Instant>,
    /// By time of arrival, then in the order they were sent. `None` is before all time.
    inbox: BTreeMap<(Option<Instant>, u64), Parcel>,
    /// What new arrivals must not overtake, by sender.
    floors: BTreeMap<NodeIndex, Floors>,
    /// What the endpoint itself waits for.
    pub(crate) planned: Option<Instant>,
    /// Something has changed since the endpoint looked.
    unseen: bool,
    sleeping: bool,
    rung: bool,
    pub(crate) bell: Option<UnixStream>,
}

impl Node {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            alive: true,
            random,
            out_free: None,
            in_free: None,
            inbox: BTreeMap::new(),
            floors: BTreeMap::new(),
            planned: None,
            unseen: false,
            sleeping: false,
            rung: false,
            bell: None,
        }
    }

    /// Ends the process: what it has not read is gone.
    pub(crate) fn end(&mut self) {
        self.alive = false;
        self.inbox.clear();
        self.wake();
    }

    /// Adds a parcel; `None` lets it arrive before all time. `sequence` tells apart what arrives at once.
    pub(crate) fn deliver(&mut self, arrival: Option<Instant>, sequence: u64, parcel: Parcel) {
        if self.alive {
            self.inbox.insert((arrival, sequence), parcel);
            self.wake();
        }
    }

    /// The next parcel that has arrived by `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Parcel> {
        let first = self.inbox.first_entry()?;
        (first.key().0 <= Some(now)).then(|| first.remove())
    }

    /// When something arrives or is to be done.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let arrival = self.inbox.first_key_value().and_then(|((arrival, _), _)| *arrival);
        arrival.into_iter().chain(self.planned).min()
    }

    /// The same, but only what lies after `now`.
    pub(crate) fn next_event(&self, now: Instant) -> Option<Instant> {
        let mut later = self.inbox.range((Bound::Excluded((Some(now), u64::MAX)), Bound::Unbounded));
        let arrival = later.next().and_then(|((arrival, _), _)| *arrival);
        arrival.into_iter().chain(self.planned.filter(|planned| *planned > now)).min()
    }

    /// The endpoint is looking. `true` when it was rung for.
    pub(crate) fn awake(&mut self) -> bool {
        self.unseen = false;
        self.sleeping = false;
        std::mem::take(&mut self.rung)
    }

    /// The endpoint wants to sleep. `false` when it must look once more.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        self.sleeping = !self.unseen && self.alive;
        self.sleeping
    }

    /// Hangs up the bell, which may be first asked for after falling asleep: what came in between rings at once.
    pub(crate) fn hang(&mut self, bell: UnixStream) {
        self.bell = Some(bell);
        if self.unseen {
            self.ring();
        }
    }

    pub(crate) fn wake(&mut self) {
        self.unseen = true;
        if std::mem::take(&mut self.sleeping) {
            self.ring();
        }
    }

    fn ring(&mut self) {
        if let Some(bell) = &mut self.bell {
            // A full pipe means that enough has been rung.
            let _ = bell.write(&[1]);
            self.rung = true;
        }
    }

    /// The arrival, put off until it overtakes nothing that it must not.
    pub(crate) fn arrange(&mut self, from: NodeIndex, order: Order, arrival: Instant) -> Instant {
        let floors =
            self.floors.entry(from).or_insert(Floors { all: arrival, messages: arrival, handshake: arrival });
        let arrival = arrival.max(match order {
            Order::AfterAll => floors.all,
            Order::AfterMessages => floors.messages,
            Order::Any => floors.handshake,
        });
        floors.all = floors.all.max(arrival);
        if order != Order::Any {
            floors.messages = arrival;
        }
        if order == Order::AfterAll {
            floors.handshake = arrival;
        }
        arrival
    }
}

#[derive(Clone, Copy, Debug)]
struct Floors {
    all: Instant,
    messages: Instant,
    handshake: Instant,
}
