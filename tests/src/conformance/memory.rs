//! Memory that tests read and write while peers do.

use gradwire_transport::{Allocation, Capabilities, Memory, Region, Transport};
use std::ptr::NonNull;

/// Where the memory of a region comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    /// From the caller, through `register`.
    Registered,
    /// From the transport, through `allocate`.
    Allocated,
}

impl MemoryKind {
    /// The kinds that a transport knows.
    #[must_use]
    pub fn of(transport: &dyn Transport) -> Vec<Self> {
        let can = transport.capabilities();
        [(Capabilities::REGISTER, Self::Registered), (Capabilities::ALLOCATE, Self::Allocated)]
            .into_iter()
            .filter_map(|(capability, kind)| can.contains(capability).then_some(kind))
            .collect()
    }

    /// Those that peers can reach.
    #[must_use]
    pub fn reachable(transport: &dyn Transport) -> Vec<Self> {
        let can = transport.capabilities();
        let is_private = can.contains(Capabilities::DIRECT) || !can.contains(Capabilities::REVOKE);
        Self::of(transport).into_iter().filter(|kind| !is_private || *kind == Self::Allocated).collect()
    }
}

/// Memory behind a region. Whoever drops it has deregistered the region, or dropped its transport.
#[derive(Debug)]
pub struct TestMemory {
    /// The region, as its transport calls it.
    pub region: Region,
    address: NonNull<u8>,
    len: usize,
    _owner: Owner,
}

#[derive(Debug)]
#[expect(dead_code, reason = "kept until dropped")]
enum Owner {
    Registered(Vec<u8>),
    Allocated(Allocation),
}

impl TestMemory {
    /// `len` zeroed bytes, named by `transport`.
    pub fn new(transport: &mut dyn Transport, kind: MemoryKind, len: usize) -> Self {
        match kind {
            MemoryKind::Registered => {
                let mut bytes = vec![0; len];
                let address = NonNull::from(bytes.as_mut_slice()).cast();
                // SAFETY: the vector is not touched but through this address, by this thread, between calls of the
                // transport, and lives as long as the region does: see the type.
                let memory = unsafe { Memory::host(address, len) };
                let region = transport.register(&memory).expect("register");
                Self { region, address, len, _owner: Owner::Registered(bytes) }
            }
            MemoryKind::Allocated => {
                let (region, allocation) = transport.allocate(len).expect("allocate");
                let address = allocation.address();
                assert_eq!(allocation.len(), len, "an allocation of another size than asked for");
                let is_aligned = len == 0 || address.addr().get().is_multiple_of(4096);
                assert!(is_aligned, "an allocation that is not at a page boundary");
                Self { region, address, len, _owner: Owner::Allocated(allocation) }
            }
        }
    }

    /// What stands there now.
    #[must_use]
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let first = self.locate(offset, len);
        let mut bytes = vec![0; len];
        // SAFETY: `first` is valid for `len` initialised bytes, and the vector is memory of its own. Only the
        // thread that runs the test writes them, in calls of transports.
        unsafe { first.copy_to_nonoverlapping(NonNull::from(bytes.as_mut_slice()).cast(), len) };
        bytes
    }

    /// All of it.
    #[must_use]
    pub fn read_all(&self) -> Vec<u8> {
        self.read(0, self.len)
    }

    /// Changes what stands there.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let first = self.locate(offset, bytes.len());
        // SAFETY: `first` is valid for that many bytes, the slice is memory of its own, and only this thread
        // accesses either.
        unsafe { first.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    fn locate(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset <= self.len && len <= self.len - offset, "the test itself leaves its memory");
        // SAFETY: `offset` is at most the length of the memory behind `address`.
        unsafe { self.address.add(offset) }
    }
}
