//! The doorbell: an eventfd per process, which peers ring when its owner sleeps.

use crate::segment::Refused;
use rustix::event::EventfdFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;

/// Our own bell, or a peer's.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> Result<Self, Refused> {
        rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(Self)
            .map_err(Refused::during("eventfd"))
    }

    /// A peer's bell. Ringing must never wait, so it has to be non-blocking.
    pub(crate) fn accept(fd: OwnedFd) -> Result<Self, &'static str> {
        match rustix::fs::fcntl_getfl(&fd) {
            Ok(flags) if flags.contains(OFlags::NONBLOCK) => Ok(Self(fd)),
            _ => Err("a bell that could block"),
        }
    }

    /// Rings. A bell that cannot take another ring is ringing already; one whose owner is gone needs none.
    pub(crate) fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it quiet.
    pub(crate) fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
