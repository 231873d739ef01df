//! Objects of the library, closed when dropped, and what the library says when something fails.

use crate::sys::{FI_EAGAIN, Functions, fi_ops, fid, fid_av, fid_cq, fid_domain, fid_ep, fid_fabric, fid_mr};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr::NonNull;

/// An error code of the library, positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) i32);

impl Code {
    /// Of a call that returns 0 or more when all went well.
    pub(crate) fn check(result: isize) -> Result<usize, Self> {
        usize::try_from(result).map_err(|_| Self(i32::try_from(-result).unwrap_or(i32::MAX)))
    }

    /// Whether the call is to be made again after progress.
    pub(crate) fn is_again(self) -> bool {
        self.0 == FI_EAGAIN
    }

    /// The library's words.
    pub(crate) fn text(self, functions: &Functions) -> String {
        // SAFETY: any number may be asked for, and the answer is a static string (fi_strerror(3)).
        let text = unsafe { (functions.strerror)(self.0) };
        // SAFETY: as above.
        unsafe { owned(text) }
    }
}

/// A copy of a string of the library's; empty when there is none.
///
/// # Safety
///
/// Null, or a string that ends with a zero and stays during the call.
pub(crate) unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller promised it.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Structures that begin with a `fid`.
///
/// # Safety
///
/// The first field is a `fid`, and the layout is C's.
pub(crate) unsafe trait Object {}

// SAFETY: the first field is `fid: fid` under `repr(C)`, as `sys::tests` checks by their sizes.
unsafe impl Object for fid_fabric {}
// SAFETY: as above.
unsafe impl Object for fid_domain {}
// SAFETY: as above.
unsafe impl Object for fid_cq {}
// SAFETY: as above.
unsafe impl Object for fid_av {}
// SAFETY: as above.
unsafe impl Object for fid_ep {}
// SAFETY: as above.
unsafe impl Object for fid_mr {}

/// An object of the library. Whoever holds one keeps what it was made from.
pub(crate) struct Handle<T: Object>(NonNull<T>);

impl<T: Object> Handle<T> {
    /// What a call has made.
    ///
    /// # Safety
    ///
    /// `made` is what a call of the library that returned `code` stored: for 0 an object of this kind that nobody else
    /// closes.
    pub(crate) unsafe fn adopt(code: c_int, made: *mut T) -> Result<Self, Code> {
        Code::check(code as isize)?;
        NonNull::new(made).map(Self).ok_or(Code(0))
    }

    pub(crate) fn raw(&self) -> *mut T {
        self.0.as_ptr()
    }

    pub(crate) fn fid(&self) -> *mut fid {
        self.raw().cast()
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: the object lives until `self` is dropped, and the library changes none of the fields declared in
        // `sys` behind our back but during a call that binds or enables the object.
        unsafe { self.0.as_ref() }
    }

    /// `fi_*_bind`.
    pub(crate) fn bind<U: Object>(&self, other: &Handle<U>, flags: u64) -> Result<(), Code> {
        // SAFETY: both objects are open (fi_endpoint(3), fi_mr(3)).
        let code = unsafe { (self.operations().bind)(self.fid(), other.fid(), flags) };
        Code::check(code as isize).map(drop)
    }

    /// `fi_control`.
    ///
    /// # Safety
    ///
    /// `argument` is what the command asks for.
    pub(crate) unsafe fn control(&self, command: c_int, argument: *mut c_void) -> Result<(), Code> {
        // SAFETY: the object is open, and the caller answers for the argument (fi_control(3)).
        let code = unsafe { (self.operations().control)(self.fid(), command, argument) };
        Code::check(code as isize).map(drop)
    }

    /// Closes now. On an error the object may still be in use by the library.
    pub(crate) fn close(self) -> Result<(), Code> {
        let code = self.close_raw();
        std::mem::forget(self);
        Code::check(code as isize).map(drop)
    }

    fn close_raw(&self) -> c_int {
        // SAFETY: the object is open, and is closed once: `close` forgets it, or it is being dropped (fi_close(3)).
        unsafe { (self.operations().close)(self.fid()) }
    }

    fn operations(&self) -> &fi_ops {
        // SAFETY: an `Object` begins with a `fid`.
        let head = unsafe { &*self.fid() };
        // SAFETY: each object has this table, which stays as long as the object (fabric(7)).
        unsafe { &*head.ops }
    }
}

impl<T: Object> Drop for Handle<T> {
    fn drop(&mut self) {
        let code = self.close_raw();
        if code != 0 {
            tracing::debug!(code, "an object of libfabric could not be closed");
        }
    }
}

impl<T: Object> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.0).finish()
    }
}

// SAFETY: libfabric ties no object to a thread; a domain opened with FI_THREAD_DOMAIN asks that calls on it and its
// children do not overlap (fi_domain(3)), which the one who holds all of them sees to: see `Domain`.
unsafe impl<T: Object> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: Object> Sync for Handle<T> {}
