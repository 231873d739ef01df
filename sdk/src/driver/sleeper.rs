//! Sleeping until a transport has work. One thread at a time.

use super::wires::Wires;
use crate::{Error, Result};
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

const NOBODY: u8 = 0;
const CALLER: u8 = 1;
const SERVICE: u8 = 2;

/// What the wake-up call is known by; transports follow.
const BELL: u64 = 0;

/// Sleeping no longer than this keeps transports alive that cannot wake anybody.
const BLIND: Duration = Duration::from_micros(200);

#[derive(Debug)]
pub(super) struct Sleeper {
    poll: OwnedFd,
    bell: OwnedFd,
    who: AtomicU8,
    /// Some transport has nothing to sleep on.
    blind: bool,
}

impl Sleeper {
    pub(super) fn new(wires: &Wires) -> Result<Self> {
        let refused = |errno: Errno| Error::System(format!("epoll and eventfd are needed: {errno}").into());
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(refused)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(refused)?;
        epoll::add(&poll, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN).map_err(refused)?;
        let mut blind = false;
        for (carrier, index) in wires.carriers.iter().zip(1..) {
            match carrier.transport.readiness() {
                Some(fd) => epoll::add(&poll, fd, epoll::EventData::new_u64(index), epoll::EventFlags::IN)
                    .map_err(refused)?,
                None => blind = true,
            }
        }
        Ok(Self { poll, bell, who: AtomicU8::new(NOBODY), blind })
    }

    /// Becomes the one who sleeps, unless there is one.
    pub(super) fn claim(&self) -> bool {
        self.who.compare_exchange(NOBODY, CALLER, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    pub(super) fn claim_for_service(&self) -> bool {
        self.who.compare_exchange(NOBODY, SERVICE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    pub(super) fn is_taken(&self) -> bool {
        self.who.load(Ordering::SeqCst) != NOBODY
    }

    pub(super) fn leave(&self) {
        self.who.store(NOBODY, Ordering::Release);
    }

    /// Sleeps. The bell is silent afterwards.
    pub(super) fn sleep(&self, deadline: Option<Instant>) {
        let mut wait = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if self.blind {
            wait = Some(wait.map_or(BLIND, |wait| wait.min(BLIND)));
        }
        let timeout = wait
            .map(|wait| Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) });
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(BELL) }; 4];
        // Interrupted or refused: the caller looks around and comes back.
        if let Ok(count) = epoll::wait(self.poll.as_fd(), &mut events, timeout.as_ref())
            && events[..count].iter().any(|event| event.data.u64() == BELL)
        {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    /// Wakes the one who sleeps.
    pub(super) fn wake(&self) {
        if self.is_taken() {
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    pub(super) fn wake_if_service(&self) {
        if self.who.load(Ordering::SeqCst) == SERVICE {
            self.wake();
        }
    }
}
