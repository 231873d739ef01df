//! Whether this process is a child that was forked off one with jobs in it.
//!
//! A child has copies of everything but the threads: of locks that a thread held just then, of connections whose other ends know
//! one process, of mappings that peers write to. So it must not touch any of it. The kernel tells: a page that is zeroed
//! in children (`madvise(2)`, `MADV_WIPEONFORK`, since Linux 4.14). Looking there costs a load, asking for the process's number
//! a system call.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// A byte that is 1 where it was written, and 0 in children.
static MARK: OnceLock<Option<Mark>> = OnceLock::new();

#[derive(Clone, Copy)]
struct Mark(NonNull<AtomicU8>);

// SAFETY: the mark is an atomic in memory that stays mapped for as long as the process lives.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

/// Marks this process as one whose children are to be told apart. Where the kernel cannot, none is.
pub(crate) fn mark() {
    MARK.get_or_init(Mark::new);
}

/// Whether a process that [`mark`] was called in was forked to get this one.
#[inline]
pub(crate) fn is_child() -> bool {
    match MARK.get() {
        // SAFETY: the mapping is never taken away, and one byte of it is always readable.
        Some(Some(Mark(byte))) => unsafe { byte.as_ref() }.load(Ordering::Relaxed) == 0,
        _ => false,
    }
}

impl Mark {
    fn new() -> Option<Self> {
        let len = rustix::param::page_size();
        // SAFETY: a new private mapping, at no address that anything else uses (mmap(2)).
        let page = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let page = page.ok()?;
        // SAFETY: the page is the mapping above, which nothing refers to yet; its content is zeros.
        unsafe { madvise(page, len, Advice::LinuxWipeOnFork) }.ok()?;
        let byte = NonNull::new(page.cast::<AtomicU8>())?;
        // SAFETY: the page is mapped, writable and aligned for a byte, and nobody else knows it.
        unsafe { byte.as_ref() }.store(1, Ordering::Relaxed);
        Some(Self(byte))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Communicator, Error, Sum, Window};
    use gradwire_transport::Transport;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    /// What goes wrong in a child, as its exit code.
    fn child(comm: Communicator, window: Window<u64>) -> i32 {
        let is_told =
            |result: crate::Result<()>| matches!(result, Err(Error::Misuse(text)) if text.contains("forked"));
        let request = comm.start_all_reduce(comm.allocate::<u64>(10).unwrap(), Sum);
        let checks = [
            is_told(comm.all_reduce(&mut [1_u64], Sum)),
            is_told(comm.all_reduce(&mut vec![1_u64; 100_000], Sum)),
            is_told(comm.barrier()),
            is_told(comm.send(&[1_u64], 1, 0)),
            is_told(comm.recv(&mut [1_u64], 1, 0).map(drop)),
            is_told(comm.probe::<u64>(1, 0).map(drop)),
            is_told(comm.duplicate().map(drop)),
            is_told(window.put(1, 0, &[7])),
            is_told(window.fetch_and_op(1, 0, 7, Sum).map(drop)),
            is_told(window.flush_all()),
            is_told(window.fence()),
            is_told(request.wait().1),
        ];
        drop(window);
        drop(comm);
        checks.iter().position(|told| !told).map_or(0, |check| check as i32 + 1)
    }

    /// Case 26: the child gets errors and ends at once; the parent and its peers do not notice.
    fn forks(transport: fn(crate::Rank) -> crate::Result<Box<dyn Transport>>) {
        crate::run_over(2, transport, |comm| {
            let window = comm.create_window::<u64>(1).unwrap();
            let buffer = comm.allocate::<u64>(1000).unwrap();
            let sum = |call: u64| {
                let mut mine = vec![comm.rank() as u64 + call; 1 + 5000 * (call as usize % 2)];
                comm.all_reduce(&mut mine, Sum).unwrap();
                assert!(mine.iter().all(|sum| *sum == 1 + 2 * call));
            };
            (0..50).for_each(sum);
            if comm.rank() == 0 {
                // SAFETY: the child calls this library, which sees to it, allocates, which the C library's allocator allows
                // after a fork, and ends without running what is registered for the end of the process.
                match unsafe { fork() }.unwrap() {
                    ForkResult::Child => {
                        drop(buffer);
                        let code = child(comm, window);
                        // SAFETY: ends the process (_exit(2)).
                        unsafe { libc::_exit(code) }
                    }
                    ForkResult::Parent { child } => {
                        (50..100).for_each(sum);
                        assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
                    }
                }
            } else {
                (50..100).for_each(sum);
            }
            (100..1000).for_each(sum);
            window.fence().unwrap();
            let mut value = [1];
            window.load(0, &mut value).unwrap();
            assert_eq!(value, [0], "a child has written to the window");
        })
        .unwrap();
    }

    #[test]
    #[cfg(feature = "shm")]
    fn a_child_is_told_so_over_shm() {
        forks(|_| crate::transports::shm(None));
    }

    #[test]
    #[cfg(feature = "tcp")]
    fn a_child_is_told_so_over_tcp() {
        forks(|_| crate::transports::tcp(&crate::Config::default(), None));
    }

    /// How many descriptors a program gets that this process starts.
    fn inherited() -> usize {
        let output = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    }

    /// Case 26: programs that are started in the middle of calls get no descriptors of ours.
    #[test]
    #[cfg(all(feature = "shm", feature = "tcp"))]
    fn programs_inherit_no_descriptors() {
        let before = inherited();
        let open = |tcp: bool| {
            if tcp {
                crate::transports::tcp(&crate::Config::default(), None)
            } else {
                crate::transports::shm(None)
            }
        };
        for tcp in [false, true] {
            let transport = |_| open(tcp);
            crate::run_over(2, transport, |comm| {
                let buffer = comm.allocate::<u64>(5000).unwrap();
                let (buffer, result) = {
                    let request = comm.start_all_reduce(buffer, Sum);
                    assert_eq!(inherited(), before);
                    request.wait()
                };
                result.unwrap();
                assert_eq!(buffer[4999], 0);
            })
            .unwrap();
        }
    }
}
