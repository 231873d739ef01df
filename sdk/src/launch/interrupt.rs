//! Telling a running launcher to stop, from a signal handler's thread or another one.
#![forbid(unsafe_code)]

use crate::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// What the launcher passes on to its ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: please end.
    Terminate,
}

impl Signal {
    const ALL: [Self; 2] = [Self::Interrupt, Self::Terminate];

    /// Its number.
    pub fn number(self) -> i32 {
        self.raw().as_raw()
    }

    /// The signal of this number, if it is one of these.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.number() == number)
    }

    pub(super) fn raw(self) -> rustix::process::Signal {
        match self {
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

/// Tells a launcher, while it runs, to end its ranks: with the given signal the first time, with SIGKILL from
/// the second time on.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Counts the interrupts that the launcher has not seen yet.
    event: OwnedFd,
    /// The last one.
    signal: AtomicI32,
}

impl Interrupter {
    pub(super) fn new() -> Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System(Arc::from(format!("no descriptor for interrupts: {error}"))))?;
        Ok(Self(Arc::new(Inner { event, signal: AtomicI32::new(0) })))
    }

    /// Passes `signal` on. Without effect once the launcher has ended.
    pub fn interrupt(&self, signal: Signal) {
        self.0.signal.store(signal.number(), Ordering::Release);
        // It fails only after 2^64 - 1 interrupts that nobody has looked at.
        let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
    }

    /// The signal since the last call, and how many there were.
    pub(super) fn take(&self) -> Option<(Signal, u64)> {
        let mut count = [0; 8];
        rustix::io::read(&self.0.event, &mut count).ok()?;
        let signal = Signal::from_number(self.0.signal.load(Ordering::Acquire))?;
        Some((signal, u64::from_ne_bytes(count)))
    }
}

impl AsFd for Interrupter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
