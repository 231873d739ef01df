//! A process that PMIx knows.

use super::library::{BOOL, BYTES, Functions, GLOBAL, Info, Process, SUCCESS, Value};
use crate::Rank;
use std::ffi::{CString, c_int};
use std::ptr;

/// The most bytes a rank may contribute, as at the rendezvous.
const MAX_CONTRIBUTION: usize = 64 * 1024;
/// The first byte of each contribution: an empty one is something, too.
const MARK: u8 = b'g';

/// Between `PMIx_Init` and `PMIx_Finalize`. Lives in the thread that made it.
pub(super) struct Session {
    functions: Functions,
    own: Process,
    round: usize,
}

impl Session {
    /// Introduces this process to the launcher.
    pub(super) fn open(functions: Functions) -> Result<Self, String> {
        let mut own = Process { space: [0; 256], rank: 0 };
        // SAFETY: `PMIx_Init` writes a `pmix_proc_t` to its first argument, which is valid for that, and reads no
        // directives where their count is 0. It may be called several times in a process.
        let status = unsafe { (functions.init)(&mut own, ptr::null_mut(), 0) };
        succeeded("PMIx_Init", status)?;
        Ok(Self { functions, own, round: 0 })
    }

    /// Itself, if the launcher's variables and its library speak of the same rank.
    pub(super) fn check(self, rank: Rank) -> Result<Self, String> {
        if self.own.rank as usize == rank {
            return Ok(self);
        }
        Err(format!("it says that this is rank {}, the environment {rank}", self.own.rank))
    }

    /// Puts `bytes` where all ranks can get them, waits for all, and gets theirs.
    pub(super) fn all_gather(&mut self, bytes: &[u8], size: usize) -> Result<Vec<Vec<u8>>, String> {
        if bytes.len() > MAX_CONTRIBUTION {
            return Err(format!(
                "{} bytes are more than a start can exchange ({MAX_CONTRIBUTION})",
                bytes.len()
            ));
        }
        // Unique within the job: what was got once is remembered.
        let key = CString::new(format!("gradwire.{}", self.round)).unwrap_or_default();
        self.put(&key, bytes)?;
        self.fence()?;
        let all = (0..size).map(|rank| self.get(&key, rank)).collect();
        self.round += 1;
        all
    }

    fn put(&self, key: &CString, bytes: &[u8]) -> Result<(), String> {
        let mut marked = [&[MARK], bytes].concat();
        let mut value = Value { kind: BYTES, bytes: marked.as_mut_ptr().cast(), len: marked.len(), rest: 0 };
        // SAFETY: the key is a C string of less than 512 bytes; the value is a byte object whose address and length are
        // those of `marked`, which lives until the end of this function. `PMIx_Put` copies it before it returns.
        let status = unsafe { (self.functions.put)(GLOBAL, key.as_ptr(), &mut value) };
        succeeded("PMIx_Put", status)?;
        // SAFETY: `PMIx_Commit` has no arguments, and this process is between init and finalize.
        let status = unsafe { (self.functions.commit)() };
        succeeded("PMIx_Commit", status)
    }

    /// Returns when all ranks have come here, and passes on what they have put.
    fn fence(&self) -> Result<(), String> {
        let mut key = [0; 512];
        key[..COLLECT.len()].copy_from_slice(COLLECT);
        // The truth value is the first byte, on a machine that stores the lowest byte first.
        let truth = ptr::without_provenance_mut(1_usize.to_le());
        let directive = Info { key, flags: 0, value: Value { kind: BOOL, bytes: truth, len: 0, rest: 0 } };
        // SAFETY: no processes, with a count of 0, means all of the job. The directive is one `pmix_info_t` with a key that
        // ends in a zero and a truth value, which is not followed as a pointer; it lives until the call returns.
        let status = unsafe { (self.functions.fence)(ptr::null(), 0, &directive, 1) };
        succeeded("PMIx_Fence", status)
    }

    fn get(&self, key: &CString, rank: Rank) -> Result<Vec<u8>, String> {
        let process = Process { rank: u32::try_from(rank).unwrap_or(u32::MAX), ..self.own.clone() };
        let mut value: *mut Value = ptr::null_mut();
        // SAFETY: the process is that of a rank of the own job, whose name `PMIx_Init` has written; the key is a C string;
        // there are no directives, with a count of 0; and the last argument is valid for the pointer that is written.
        let status = unsafe { (self.functions.get)(&process, key.as_ptr(), ptr::null(), 0, &mut value) };
        succeeded("PMIx_Get", status).map_err(|reason| format!("{reason}, for rank {rank}"))?;
        if value.is_null() {
            return Err(format!("PMIx_Get gave nothing, for rank {rank}"));
        }
        // SAFETY: not null, and after success `PMIx_Get` has stored the address of a `pmix_value_t` that it allocated for its
        // caller alone, so that nobody writes to it; nothing else borrows it here.
        let Value { kind, bytes, len, .. } = unsafe { ptr::read(value) };
        let contribution = self.copy(kind, bytes.cast(), len);
        if kind == BYTES {
            // SAFETY: a byte object owns its bytes, which the library allocated by `malloc` (or there are none: null); the
            // copy is made, and nobody else has the address.
            unsafe { (self.functions.free)(bytes) };
        }
        // SAFETY: the library allocated the value itself by `malloc` for its caller, who is to free it, here and once.
        unsafe { (self.functions.free)(value.cast()) };
        contribution
            .ok_or_else(|| format!("rank {rank} has put something that this version does not understand"))
    }

    /// What is behind the mark, if the value is one of ours.
    fn copy(&self, kind: u16, bytes: *const u8, len: usize) -> Option<Vec<u8>> {
        if kind != BYTES || bytes.is_null() || !(1..=MAX_CONTRIBUTION + 1).contains(&len) {
            return None;
        }
        // SAFETY: the value is a byte object, so its two words are an address and the number of bytes there, which the library
        // has initialised and nobody changes before they are freed, after this function. The address is not null, bytes
        // need no alignment, and the length is below `isize::MAX`.
        let found = unsafe { std::slice::from_raw_parts(bytes, len) };
        found.strip_prefix(&[MARK]).map(<[u8]>::to_vec)
    }
}

impl Drop for Session {
    /// A launcher takes a rank that ends without a word for a failure.
    fn drop(&mut self) {
        // SAFETY: there are no directives, with a count of 0, and every session has been opened by one `PMIx_Init`.
        let status = unsafe { (self.functions.finalize)(ptr::null(), 0) };
        if let Err(reason) = succeeded("PMIx_Finalize", status) {
            tracing::debug!("{reason}");
        }
    }
}

fn succeeded(function: &str, status: c_int) -> Result<(), String> {
    if status == SUCCESS { Ok(()) } else { Err(format!("{function} failed with status {status}")) }
}

/// `PMIX_COLLECT_DATA`.
const COLLECT: &[u8] = b"pmix.collect";
