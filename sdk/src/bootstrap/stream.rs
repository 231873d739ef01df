//! A connected socket that never blocks for longer than it is told to.
#![forbid(unsafe_code)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// A connected stream socket of any family. It need not be in non-blocking mode.
#[derive(Debug)]
pub(super) struct Stream(OwnedFd);

impl Stream {
    /// The socket must be connected.
    pub(super) fn new(socket: OwnedFd) -> Self {
        // Only TCP knows it: elsewhere there is nothing to set.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        Self(socket)
    }

    /// Reads what is there; 0 is the end.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        Ok(retry_on_intr(|| recv(&self.0, &mut *buffer, RecvFlags::DONTWAIT))?.0)
    }

    /// Writes what fits.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize> {
        Ok(retry_on_intr(|| send(&self.0, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT))?)
    }

    /// Reads at least one byte.
    pub(super) fn read_some(&self, buffer: &mut [u8], deadline: Instant) -> Result<usize> {
        loop {
            match self.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::IN, deadline)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until the buffer is full.
    pub(super) fn read_exact(&self, mut buffer: &mut [u8], deadline: Instant) -> Result<()> {
        while !buffer.is_empty() {
            let count = self.read_some(buffer, deadline)?;
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    /// Writes all of it.
    pub(super) fn write_all(&self, mut bytes: &[u8], deadline: Instant) -> Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT, deadline)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The user at the other end of a Unix socket.
    pub(super) fn peer_user(&self) -> Result<rustix::process::Uid> {
        Ok(sockopt::socket_peercred(&self.0)?.uid)
    }

    fn wait(&self, flags: PollFlags, deadline: Instant) -> Result<()> {
        let ready = wait_until(&mut [PollFd::new(&self.0, flags)], Some(deadline))?;
        if ready { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of the descriptors is ready: false when the deadline came first.
pub(crate) fn wait_until(descriptors: &mut [PollFd<'_>], deadline: Option<Instant>) -> Result<bool> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Rounded up, so that the deadline has passed when the wait ends.
        let timeout = left.map(|left| left + Duration::from_micros(100));
        let timeout =
            timeout.map(Timespec::try_from).transpose().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        match poll(descriptors, timeout.as_ref()) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
