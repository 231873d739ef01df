//! Cross-memory attach: the system copies from the private memory of another process of the same user, once and straight
//! to where it is wanted.
//!
//! Whether it may is found out by trying: names of processes mean nothing across namespaces, and security modules,
//! containers and `prctl` all have a say.

use crate::Rank;
use crate::buffer::Span;
use libc::{c_ulong, iovec, pid_t};

/// What the system calls a process.
pub(crate) type SystemProcess = pid_t;

/// Bytes that a rank tells the others, for them to try.
pub(super) const PROBE: usize = 3 * size_of::<u64>();

/// A word that nobody could guess, and where it lies.
#[derive(Debug)]
pub(super) struct Probe(Box<u64>);

impl Probe {
    /// `None` where the system has no random numbers.
    pub(super) fn new() -> Option<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(Box::new(u64::from_ne_bytes(bytes))))
    }

    /// This process, the address of the word, and the word. It stays there until the probe is dropped.
    pub(super) fn told(&self) -> [u8; PROBE] {
        let address = std::ptr::from_ref(&*self.0).addr() as u64;
        zerocopy::transmute!([std::process::id().into(), address, *self.0])
    }
}

/// The processes of a group's ranks, each found to let this one read its memory.
#[derive(Debug)]
pub(crate) struct Attached(Box<[pid_t]>);

impl Attached {
    /// Tries what all ranks told; `None` when one of them cannot be read.
    pub(super) fn probe<'a>(told: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let try_one = |told: &[u8]| {
            let [process, address, word]: [u64; 3] = zerocopy::transmute!(*told.first_chunk::<PROBE>()?);
            let process = pid_t::try_from(process).ok().filter(|process| *process > 0)?;
            let mut found = [0];
            // SAFETY: `found` is used through the span only, until the call is over.
            let span = unsafe { Span::of_slice(&mut found) };
            let is_read = read(process, address, span);
            (is_read && found[0] == word).then_some(process)
        };
        told.map(try_one).collect::<Option<_>>().map(Self)
    }

    /// By rank.
    pub(super) fn processes(&self) -> &[SystemProcess] {
        &self.0
    }

    /// Fills `destination` with what lies at an address of a rank. `false`: it cannot be read any more.
    pub(super) fn read(&self, rank: Rank, address: u64, destination: Span) -> bool {
        self.0.get(rank).is_some_and(|process| read(*process, address, destination))
    }
}

/// Fills `destination` with what lies at an address of a process. `false`: it cannot be read, or not any more.
pub(crate) fn read(process: SystemProcess, address: u64, destination: Span) -> bool {
    let mut done = 0;
    while done < destination.len() {
        let Some(rest) = destination.part(done..destination.len()) else { return false };
        let local = iovec { iov_base: rest.address().as_ptr().cast(), iov_len: rest.len() };
        let remote = iovec { iov_base: (address as usize + done) as *mut _, iov_len: rest.len() };
        let (one, no_flags): (c_ulong, c_ulong) = (1, 0);
        // SAFETY: process_vm_readv(2) writes at most `iov_len` bytes at the local address, which are this operation's to write
        // by the contract of `Span`; the remote address is checked by the kernel against the other process.
        let copied = unsafe {
            libc::process_vm_readv(process, &raw const local, one, &raw const remote, one, no_flags)
        };
        match usize::try_from(copied) {
            Ok(copied) if copied > 0 => done += copied,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(told: &[[u8; PROBE]]) -> Option<Attached> {
        Attached::probe(told.iter().map(<[u8; PROBE]>::as_slice))
    }

    #[test]
    fn a_word_that_is_another_is_no_proof() {
        let own = Probe::new().expect("random numbers");
        let told = own.told();
        assert!(probe(&[told, told]).is_some());
        // The process, the address, the word.
        for byte in [1, 3, 7, 8, 13, 16, 23] {
            let mut wrong = told;
            wrong[byte] ^= 0x80;
            assert!(probe(&[told, wrong]).is_none(), "byte {byte}");
        }
    }

    #[test]
    fn long_memory_is_read_whole_and_what_is_not_there_is_not() {
        let mut source: Vec<u32> = (0..700_000).collect();
        let mut copy = vec![0_u32; source.len()];
        let attached = probe(&[Probe::new().expect("random numbers").told()]).expect("this very process");
        let address = source.as_mut_ptr().addr() as u64;
        // SAFETY: the vector is not used while the span is.
        let span = unsafe { Span::of_slice(&mut copy) };
        assert!(attached.read(0, address, span));
        assert_eq!(copy, source);
        // SAFETY: as above.
        let span = unsafe { Span::of_slice(&mut copy) };
        assert!(!attached.read(0, 0, span));
        assert!(!attached.read(1, address, span));
    }
}
