//! When MPI may be called: from the moment it is seen to run until it is finalized, and never afterwards.
//!
//! A communicator may outlive the program's use of MPI, and its transport is driven by a thread of its own. So each call
//! passes this gate, which `MPI_Finalize` itself shuts: before anything else it deletes the attributes of `MPI_COMM_SELF`
//! (MPI 4.0, 11.4.1), one of which is ours.

use super::{network, wire};
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

static GATE: Mutex<Gate> = Mutex::new(Gate::Unattended);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gate {
    /// Nobody would shut it.
    Unattended,
    Open,
    Shut,
}

/// MPI will not be finalized while this lives.
pub(super) struct Open {
    _gate: MutexGuard<'static, Gate>,
}

/// Passes the gate; `None`: MPI has been finalized.
pub(super) fn pass() -> Option<Open> {
    let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    (*gate == Gate::Open).then_some(Open { _gate: gate })
}

/// Opens the gate, once, for a program in which MPI has been initialised. The code of MPI if it refuses.
pub(super) fn open() -> Result<(), c_int> {
    let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    if *gate != Gate::Unattended {
        return Ok(());
    }
    let mut key = 0;
    // SAFETY: both functions have the signatures that MPI asks for, and stay; the key is stored before the call returns.
    let code = unsafe {
        ffi::MPI_Comm_create_keyval(Some(not_copied), Some(finalizing), &raw mut key, ptr::null_mut())
    };
    if code != 0 {
        return Err(code);
    }
    // SAFETY: MPI runs, as the caller holds a communicator of it; a null attribute is an attribute.
    let code = unsafe { ffi::MPI_Comm_set_attr(ffi::RSMPI_COMM_SELF, key, ptr::null_mut()) };
    if code != 0 {
        return Err(code);
    }
    *gate = Gate::Open;
    Ok(())
}

unsafe extern "C" fn not_copied(
    _communicator: ffi::MPI_Comm,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _copy: *mut c_void,
    is_copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI passes the address of a flag (MPI 4.0, 7.7.2).
    unsafe { *is_copied = 0 };
    0
}

/// MPI still runs while it deletes attributes.
unsafe extern "C" fn finalizing(
    _communicator: ffi::MPI_Comm,
    _key: c_int,
    _value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    let mut gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
    *gate = Gate::Shut;
    network::all().into_iter().for_each(wire::sweep);
    0
}
