//! The epoll set: everything whose readiness means work.

use crate::bell::Bell;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// What became ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ready {
    Listener,
    Bell,
    /// The connection of this number.
    Connection(u64),
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

impl Poller {
    pub(crate) fn new(listener: &OwnedFd, bell: &Bell) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self { epoll })
    }

    /// Watches a connection until its socket is closed.
    pub(crate) fn add(&self, number: u64, socket: impl AsFd) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, EventData::new_u64(number), EventFlags::IN)
    }

    /// Watches for room to write, too, or no longer.
    pub(crate) fn watch_room(&self, number: u64, socket: impl AsFd, watch: bool) {
        let flags = if watch { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        // Cannot fail: the socket is in the set, and changing an entry takes no memory (epoll_ctl(2)).
        let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(number), flags);
    }

    /// Takes callers, or leaves them waiting.
    pub(crate) fn watch_listener(&self, listener: &OwnedFd, watch: bool) {
        let flags = if watch { EventFlags::IN } else { EventFlags::empty() };
        let _ = epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENER), flags);
    }

    /// What is ready now, as far as one look tells.
    pub(crate) fn poll(&self, mut found: impl FnMut(Ready)) -> Result<(), Errno> {
        let mut space = [const { MaybeUninit::uninit() }; 64];
        let events = match epoll::wait(&self.epoll, &mut space, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        for event in events {
            found(match event.data.u64() {
                LISTENER => Ready::Listener,
                BELL => Ready::Bell,
                number => Ready::Connection(number),
            });
        }
        Ok(())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
