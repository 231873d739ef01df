//! The inherited socket of PMI: the one place of start-up that needs `unsafe`.

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, fcntl_setfd};
use std::os::fd::{BorrowedFd, OwnedFd};

/// A descriptor of our own for the socket that the process manager left open under this number.
///
/// The inherited one is closed in processes that this one starts; it stays open here.
pub(super) fn duplicate(number: i32) -> Result<OwnedFd, String> {
    if number <= 2 {
        return Err(format!("descriptor {number} is none that a process manager uses"));
    }
    // SAFETY: `borrow_raw` asks for a descriptor that is not -1 (checked above) and stays open while it is
    // borrowed, which is until the end of this function. The process manager opened it before this program
    // began and gave it to PMI's client, whose role this module plays, so no other owner in this process may
    // close it; descriptors that Rust code opens are close-on-exec, which is checked below. Should the number
    // be wrong all the same, the three calls report EBADF or concern another socket's flags: they touch no
    // memory.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(inherited).map_err(|error| format!("descriptor {number}: {error}"))?;
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(format!("descriptor {number} was opened by this process, not by a process manager"));
    }
    let own = fcntl_dupfd_cloexec(inherited, 3).map_err(|error| format!("descriptor {number}: {error}"))?;
    fcntl_setfd(inherited, FdFlags::CLOEXEC).map_err(|error| format!("descriptor {number}: {error}"))?;
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_a_descriptor_that_was_inherited_is_taken() {
        let (socket, _other) = UnixStream::pair().unwrap();
        let reason = duplicate(socket.as_raw_fd()).unwrap_err();
        assert!(reason.contains("opened by this process"), "{reason}");

        fcntl_setfd(&socket, FdFlags::empty()).unwrap();
        let own = duplicate(socket.as_raw_fd()).unwrap();
        assert_ne!(own.as_raw_fd(), socket.as_raw_fd());
        assert_eq!(fcntl_getfd(&socket).unwrap(), FdFlags::CLOEXEC);
    }

    #[test]
    fn numbers_that_nothing_is_open_under_are_refused() {
        for number in [i32::MIN, -1, 0, 2, 100_000, i32::MAX] {
            assert!(duplicate(number).is_err(), "{number}");
        }
    }
}
