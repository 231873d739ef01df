//! One epoll set for everything that can become ready, level-triggered.

use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// What became ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Someone is at this door.
    Listener(u32),
    /// This stranger has said something.
    Stranger(u32),
    /// The connection of this peer, established or not.
    Peer(u32),
}

impl Source {
    fn encode(self) -> u64 {
        let (kind, index) = match self {
            Self::Listener(index) => (0, index),
            Self::Stranger(index) => (1, index),
            Self::Peer(index) => (2, index),
        };
        kind << 32 | u64::from(index)
    }

    fn decode(data: u64) -> Self {
        let index = data as u32;
        match data >> 32 {
            0 => Self::Listener(index),
            1 => Self::Stranger(index),
            _ => Self::Peer(index),
        }
    }
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    Nothing,
    Read,
    Write,
    Both,
}

impl From<Interest> for epoll::EventFlags {
    fn from(interest: Interest) -> Self {
        match interest {
            Interest::Nothing => Self::empty(),
            Interest::Read => Self::IN,
            Interest::Write => Self::OUT,
            Interest::Both => Self::IN | Self::OUT,
        }
    }
}

/// One thing that is ready. Errors and hang-ups count as both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ready {
    pub(crate) source: Source,
    pub(crate) read: bool,
    pub(crate) write: bool,
}

/// The set. A descriptor leaves it when it is closed.
#[derive(Debug)]
pub(crate) struct Poll(OwnedFd);

impl Poll {
    const BATCH: usize = 64;

    pub(crate) fn new() -> Result<Self, Errno> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Self)
    }

    pub(crate) fn add(&self, fd: &impl AsFd, source: Source, interest: Interest) -> Result<(), Errno> {
        epoll::add(&self.0, fd, epoll::EventData::new_u64(source.encode()), interest.into())
    }

    pub(crate) fn change(&self, fd: &impl AsFd, source: Source, interest: Interest) -> Result<(), Errno> {
        epoll::modify(&self.0, fd, epoll::EventData::new_u64(source.encode()), interest.into())
    }

    pub(crate) fn remove(&self, fd: &impl AsFd) -> Result<(), Errno> {
        epoll::delete(&self.0, fd)
    }

    /// Appends what is ready now to `ready`, without waiting; at most [`BATCH`](Self::BATCH), the rest next time.
    pub(crate) fn look(&self, ready: &mut Vec<Ready>) -> Result<(), Errno> {
        let mut space = [const { MaybeUninit::uninit() }; Self::BATCH];
        let events = match epoll::wait(&self.0, &mut space, Some(&Timespec::default())) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        ready.extend(events.iter().map(|event| {
            let flags = event.flags;
            let ended = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            Ready {
                source: Source::decode(event.data.u64()),
                read: ended || flags.contains(epoll::EventFlags::IN),
                write: ended || flags.contains(epoll::EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

impl AsFd for Poll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
