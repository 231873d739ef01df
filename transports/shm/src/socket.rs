//! Unix sockets: frames and the descriptors that travel with them. Nothing here waits.

use crate::address::Name;
use crate::frame::{Frame, Packet};
use rustix::cmsg_space;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use zerocopy::IntoBytes;

/// A connection that keeps the borders of frames. Closing it hangs up.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// What was received.
#[derive(Debug)]
pub(crate) enum Incoming {
    Frame(Frame, Descriptors),
    /// Nothing has come.
    Nothing,
    /// Bytes that are no frame, or a frame without its descriptors.
    Malformed,
    /// The peer hung up; the raw code says how, 0 when it just did.
    Ended(i32),
}

/// The descriptors of a frame, in order.
pub(crate) type Descriptors = [Option<OwnedFd>; MAX_DESCRIPTORS];
const MAX_DESCRIPTORS: usize = 2;

/// Listens under `name`.
pub(crate) fn listen(name: Name) -> Result<OwnedFd, Errno> {
    let listener = create()?;
    rustix::net::bind(&listener, &name.to_socket_address()?)?;
    // The system cuts this to its maximum.
    rustix::net::listen(&listener, 4096)?;
    Ok(listener)
}

/// Takes the next caller, if it belongs to the same user; others are dropped.
pub(crate) fn accept(listener: &OwnedFd) -> Result<Option<Socket>, Errno> {
    let fd = rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    if !same_user(&fd)? {
        tracing::debug!("a process of another user called, and was dropped");
        return Ok(None);
    }
    Ok(Some(Socket(fd)))
}

/// Calls the process that listens under `name`.
pub(crate) fn dial(name: Name) -> Result<Socket, Errno> {
    let fd = create()?;
    rustix::net::connect(&fd, &name.to_socket_address()?)?;
    if !same_user(&fd)? {
        return Err(Errno::ACCESS);
    }
    Ok(Socket(fd))
}

fn create() -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

fn same_user(fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(rustix::net::sockopt::socket_peercred(fd)?.uid == rustix::process::geteuid())
}

impl Socket {
    /// Sends a frame whole, with its descriptors, or not at all (`Errno::AGAIN`).
    pub(crate) fn send(&self, frame: &Frame, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        debug_assert_eq!(descriptors.len(), frame.descriptors());
        let packet = frame.encode();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Errno::MSGSIZE);
        }
        let bytes = [IoSlice::new(packet.as_bytes())];
        rustix::net::sendmsg(&self.0, &bytes, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Receives the next frame.
    pub(crate) fn receive(&self) -> Incoming {
        // One byte more than a frame, so that a longer packet is seen to be one.
        let mut bytes = [0; Packet::LEN + 1];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received =
            rustix::net::recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags);
        let received = match received {
            Ok(received) if received.bytes == 0 => return Incoming::Ended(0),
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Incoming::Nothing,
            Err(errno) => return Incoming::Ended(errno.raw_os_error()),
        };
        let mut descriptors = Descriptors::default();
        let mut count = 0;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                for descriptor in rights {
                    if let Some(place) = descriptors.get_mut(count) {
                        *place = Some(descriptor);
                    }
                    count += 1;
                }
            }
        }
        match Frame::decode(&bytes[..received.bytes]) {
            Some(frame) if frame.descriptors() == count && !received.flags.contains(ReturnFlags::CTRUNC) => {
                Incoming::Frame(frame, descriptors)
            }
            _ => Incoming::Malformed,
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
