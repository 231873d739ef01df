//! Shared memory: sealed memfd segments and their mappings. The only unsafe module of the crate.

use gradwire_transport::Allocation;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::num::NonZero;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the system refused, and its raw code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) context: &'static str,
    pub(crate) code: i32,
}

impl Refused {
    pub(crate) fn during(context: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self { context, code: errno.raw_os_error() }
    }

    pub(crate) fn no_memory() -> Self {
        Self::during("more shared memory than this machine has")(Errno::NOMEM)
    }
}

/// A segment of unlinked shared memory, alive as long as a descriptor or a mapping of it is.
///
/// Its size is sealed: without the seals a peer could shrink it, and our next access would raise SIGBUS.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Creates a segment of `len` zero bytes and maps it.
///
/// The kernel hands out its pages when they are first touched, near the processor that does, and as with any
/// memory of a process: a memfd has no file system that could be full. What can never be there is refused here.
pub(crate) fn create(name: &str, len: usize) -> Result<(OwnedFd, Mapping), Refused> {
    let system = rustix::system::sysinfo();
    let memory = u64::from(system.mem_unit).saturating_mul(system.totalram.saturating_add(system.totalswap));
    if len as u64 > memory {
        return Err(Refused {
            context: "more shared memory than this machine has",
            code: Errno::NOMEM.raw_os_error(),
        });
    }
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(Refused::during("memfd_create"))?;
    rustix::fs::ftruncate(&fd, len as u64).map_err(Refused::during("ftruncate of a shared segment"))?;
    rustix::fs::fcntl_add_seals(&fd, SEALS).map_err(Refused::during("sealing a shared segment"))?;
    let mapping = Mapping::of(&fd, len).map_err(Refused::during("mmap of a shared segment"))?;
    Ok((fd, mapping))
}

/// Maps a segment that a peer passed, if it is sealed and exactly `len` bytes long.
pub(crate) fn accept(fd: &OwnedFd, len: usize) -> Result<Mapping, &'static str> {
    let seals = rustix::fs::fcntl_get_seals(fd).map_err(|_| "a descriptor that is no segment")?;
    if !seals.contains(SEALS) {
        return Err("an unsealed segment");
    }
    let stat = rustix::fs::fstat(fd).map_err(|_| "a segment without a size")?;
    if u64::try_from(stat.st_size) != Ok(len as u64) {
        return Err("a segment of another size than announced");
    }
    Mapping::of(fd, len).map_err(|_| "a segment that cannot be mapped")
}

/// Bytes of a segment that holds a region of `len` bytes: the page behind it tells that the region is no more.
pub(crate) fn region_segment_len(len: usize) -> Option<usize> {
    let page = rustix::param::page_size();
    len.checked_next_multiple_of(page)?.checked_add(page)
}

/// A shared mapping of a whole segment, readable and writable, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread; what is in it is reached only through atomics or
// raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above; no method takes `&self` and hands out a reference to plain memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` is not 0, and the segment behind `fd` is sealed at that size.
    fn of(fd: impl AsFd, len: usize) -> Result<Self, Errno> {
        // SAFETY: without MAP_FIXED the kernel picks unused addresses; nothing that exists is touched.
        let address = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )
        }?;
        Ok(Self { address: NonNull::new(address.cast()).ok_or(Errno::NOMEM)?, len })
    }

    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// Whether the region in this segment was revoked by its owner.
    pub(crate) fn is_revoked(&self) -> bool {
        self.flag().load(Ordering::Relaxed) != 0
    }

    /// Tells everyone who maps the segment that its region is no more.
    pub(crate) fn mark_revoked(&self) {
        self.flag().store(1, Ordering::Relaxed);
    }

    /// The first word of the last page of a region's segment.
    fn flag(&self) -> &AtomicU64 {
        let offset = self.len - rustix::param::page_size();
        let address = offset_of(self.address, offset).cast();
        // SAFETY: segments of regions are whole pages, the last of which is behind the region: page-aligned,
        // mapped as long as `self`, and in every process touched through this atomic alone.
        unsafe { address.as_ref() }
    }

    /// Makes the memory before the last page private, at the same address: pages that no peer has mapped, with the
    /// old contents where memory suffices, else zero.
    ///
    /// The caller makes sure that no other thread of this process uses the memory meanwhile.
    pub(crate) fn make_private(&self) {
        let len = self.len - rustix::param::page_size();
        if let Err(errno) = self.swap_in_copy(len).or_else(|_| self.swap_in_zeros(len)) {
            tracing::error!(len, %errno, "a revoked region could not be made private: peers may still write it");
        }
    }

    /// Of the first `len` bytes, whole pages.
    fn swap_in_copy(&self, len: usize) -> Result<(), Errno> {
        // SAFETY: without MAP_FIXED the kernel picks unused addresses.
        let copy = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        // SAFETY: the source is the start of this mapping, the destination the new one of the same length; they
        // do not overlap. A peer may still write the source: then the bytes are unspecified, as documented.
        unsafe { ptr::copy_nonoverlapping(self.address.as_ptr(), copy.cast(), len) };
        // SAFETY: `copy` is a mapping of `len` bytes that only we know. The range it replaces is the start of this mapping,
        // whose holders use it by address only; it stays mapped, readable and writable throughout (mremap(2)).
        let moved = unsafe {
            rustix::mm::mremap_fixed(copy, len, len, MremapFlags::MAYMOVE, self.address.as_ptr().cast())
        };
        if let Err(errno) = moved {
            unmap(copy, len);
            return Err(errno);
        }
        Ok(())
    }

    fn swap_in_zeros(&self, len: usize) -> Result<(), Errno> {
        // SAFETY: the range is the start of this mapping and is replaced by one as long, readable and writable (mmap(2),
        // MAP_FIXED); its holders use it by address only.
        unsafe {
            rustix::mm::mmap_anonymous(
                self.address.as_ptr().cast(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
            )
        }?;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        unmap(self.address.as_ptr().cast(), self.len);
    }
}

fn unmap(address: *mut c_void, len: usize) {
    // SAFETY: the callers own the mapping `address..address + len` and use it no more; references into it
    // (`Words::words`) borrow the owner that is being dropped.
    let result = unsafe { rustix::mm::munmap(address, len) };
    debug_assert!(result.is_ok(), "munmap of a mapping we own cannot fail");
}

/// A mapping in which every access of every process is an atomic one of eight bytes.
#[derive(Debug)]
pub(crate) struct Words(Mapping);

impl Words {
    /// The mapping is never handed out in any other form. A hostile peer may write it by other means; all this
    /// can change is which values we load.
    pub(crate) fn new(mapping: Mapping) -> Self {
        Self(mapping)
    }
}

impl crate::ring::Storage for Words {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is valid for as long as `self`, page-aligned, and initialised (a fresh memfd is
        // zero). Eight-byte atomics are the only way in which this process touches it, by the contract of `new`.
        unsafe { std::slice::from_raw_parts(self.0.address.as_ptr().cast(), self.0.len / size_of::<u64>()) }
    }
}

/// Hands a mapping to its user; it stays mapped until both the user and the transport let go.
pub(crate) fn allocation(mapping: &Arc<Mapping>, len: usize) -> Allocation {
    debug_assert!(len < mapping.len);
    // SAFETY: the mapping is longer than `len`, zeroed, page-aligned, and alive as long as the owner; within
    // this process only the transport, on behalf of puts and gets, uses it besides the holder.
    unsafe { Allocation::new(mapping.address, len, Box::new(Arc::clone(mapping))) }
}

/// The address of a region of no bytes: at a page boundary, of no memory.
pub(crate) fn nowhere() -> NonNull<u8> {
    let page = NonZero::new(rustix::param::page_size()).unwrap_or(NonZero::<usize>::MIN);
    NonNull::without_provenance(page)
}

pub(crate) fn empty_allocation() -> Allocation {
    // SAFETY: an address of no memory is what the contract asks for when `len` is 0.
    unsafe { Allocation::new(nowhere(), 0, Box::new(())) }
}

/// Copies between two regions, either of which other processes may be using.
///
/// # Safety
///
/// `source` is valid for reads and `destination` for writes of `len` bytes, for the time of the call, and in
/// this process no reference to either range is alive.
pub(crate) unsafe fn copy(source: NonNull<u8>, destination: NonNull<u8>, len: usize) {
    // SAFETY: by the contract above; `copy` allows the ranges to overlap. Where another process writes the source
    // or uses the destination meanwhile, the bytes are unspecified: they are untyped, and read by nobody here
    // before a notice that was published after them.
    unsafe { ptr::copy(source.as_ptr(), destination.as_ptr(), len) };
}

/// The address `offset` bytes behind `address`.
pub(crate) fn offset_of(address: NonNull<u8>, offset: usize) -> NonNull<u8> {
    // Wrapping arithmetic needs no proof; `copy` asks for one when the result is used.
    NonNull::new(address.as_ptr().wrapping_add(offset)).unwrap_or(address)
}
