//! One descriptor for the control connections and the provider's queue.

use gradwire_transport::Transport;
use gradwire_transport_tcp::Tcp;
use rustix::event::epoll;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[derive(Debug)]
pub(crate) struct Sleep(Option<OwnedFd>);

impl Sleep {
    /// Over both; nothing to sleep on when one has nothing. The error is the system's.
    pub(crate) fn new(control: &Tcp, queue: Option<BorrowedFd<'_>>) -> Result<Self, i32> {
        let (Some(control), Some(queue)) = (control.readiness(), queue) else { return Ok(Self(None)) };
        let code = |errno: rustix::io::Errno| errno.raw_os_error();
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(code)?;
        for (fd, data) in [(control, 0), (queue, 1)] {
            epoll::add(&poll, fd, epoll::EventData::new_u64(data), epoll::EventFlags::IN).map_err(code)?;
        }
        Ok(Self(Some(poll)))
    }

    pub(crate) fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_ref().map(AsFd::as_fd)
    }
}
