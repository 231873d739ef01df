//! Sockets that never block, and their options.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType};
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::time::Duration;

/// What one attempt to move bytes came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moved {
    Bytes(usize),
    /// Nothing now.
    Blocked,
    /// The other side has finished sending.
    End,
}

/// One connection, established or about to be.
#[derive(Debug)]
pub(crate) struct Stream(OwnedFd);

impl Stream {
    /// Starts to connect; the socket becomes writable when that has succeeded or failed.
    pub(crate) fn dial(address: SocketAddr) -> Result<Self, Errno> {
        let stream = Self(open(address)?);
        match net::connect(&stream.0, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(stream),
            Err(errno) => Err(errno),
        }
    }

    pub(crate) fn accept(listener: &impl AsFd) -> Result<Self, Errno> {
        net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).map(Self)
    }

    /// Two ends of one connection inside this process.
    #[cfg(test)]
    pub(crate) fn pair() -> (Self, Self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let pair = net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        pair.map(|(a, b)| (Self(a), Self(b))).expect("a pair of sockets")
    }

    /// Whether a `dial` has succeeded; `None`: not decided yet.
    pub(crate) fn dialled(&self) -> Option<Result<(), Errno>> {
        match net::sockopt::socket_error(&self.0) {
            Err(errno) | Ok(Err(errno)) => Some(Err(errno)),
            Ok(Ok(())) => match net::getpeername(&self.0) {
                Ok(_) => Some(Ok(())),
                Err(_) => None,
            },
        }
    }

    /// Whether both ends are one: a dial into the range of ephemeral ports can meet itself.
    pub(crate) fn is_its_own_peer(&self) -> bool {
        match (net::getsockname(&self.0), net::getpeername(&self.0)) {
            (Ok(here), Ok(Some(there))) => here == there,
            _ => false,
        }
    }

    /// Whether the bytes stay on this host.
    fn is_local(&self) -> bool {
        let ip = |address| SocketAddr::try_from(address).map(|address| address.ip()).ok();
        let here = net::getsockname(&self.0).ok().and_then(ip);
        let there = net::getpeername(&self.0).ok().flatten().and_then(ip);
        here.is_some() && (here == there || there.is_some_and(|there| there.is_loopback()))
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<Moved, Errno> {
        moved(net::recv(&self.0, buffer, RecvFlags::empty()).map(|(_, len)| len))
    }

    /// Fills the buffers in turn; not all of them may be empty.
    pub(crate) fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> Result<Moved, Errno> {
        moved(rustix::io::readv(&self.0, buffers))
    }

    /// Never raises a signal.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<Moved, Errno> {
        moved(net::send(&self.0, bytes, SendFlags::NOSIGNAL))
    }

    /// Never raises a signal.
    pub(crate) fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> Result<Moved, Errno> {
        if let [buffer] = buffers {
            return self.write(buffer);
        }
        let mut nothing = SendAncillaryBuffer::default();
        moved(net::sendmsg(&self.0, buffers, &mut nothing, SendFlags::NOSIGNAL))
    }

    /// Reads what has come and throws it away. Returns whether the other side has finished, too.
    pub(crate) fn discard(&self) -> bool {
        let mut waste = [0; 4096];
        for _ in 0..64 {
            match self.read(&mut waste) {
                Ok(Moved::Bytes(_)) => {}
                Ok(Moved::Blocked) => return false,
                Ok(Moved::End) | Err(_) => return true,
            }
        }
        false
    }

    /// Tells the other side that nothing more will come.
    pub(crate) fn finish(&self) {
        let _ = net::shutdown(&self.0, net::Shutdown::Write);
    }

    /// Sets what a connection needs. None of it is needed to be right, only to be fast and to notice a lost
    /// host while data is under way, so that what a system refuses is left as it is.
    pub(crate) fn tune(&self, silence: Duration, congestion: Option<&str>) {
        use net::sockopt;
        let quarter = (silence / 4).max(Duration::from_secs(1));
        let _ = sockopt::set_tcp_nodelay(&self.0, true);
        let _ = sockopt::set_tcp_user_timeout(&self.0, silence.as_millis().try_into().unwrap_or(u32::MAX));
        let _ = sockopt::set_socket_keepalive(&self.0, true);
        let _ = sockopt::set_tcp_keepidle(&self.0, quarter);
        let _ = sockopt::set_tcp_keepintvl(&self.0, quarter);
        let _ = sockopt::set_tcp_keepcnt(&self.0, 3);
        let local: &[&str] = if self.is_local() { &["cubic", "reno"] } else { &[] };
        for name in congestion.iter().chain(local) {
            if sockopt::set_tcp_congestion(&self.0, name).is_ok() {
                break;
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A stream socket of the address's family, non-blocking and closed on exec.
pub(crate) fn open(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

fn moved(result: Result<usize, Errno>) -> Result<Moved, Errno> {
    match result {
        Ok(0) => Ok(Moved::End),
        Ok(len) => Ok(Moved::Bytes(len)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Moved::Blocked),
        Err(errno) => Err(errno),
    }
}
