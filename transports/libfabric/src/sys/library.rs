//! The six functions that `libfabric.so.1` exports and this crate calls, found at run time.
//!
//! Each is asked for by the version of its symbol whose structures stand in [`super::structures`]: libraries keep those
//! when they add newer ones, so that one program runs on all of them.

use super::{API, fi_fabric_attr, fi_info, fid_fabric};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// The functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) version: unsafe extern "C" fn() -> u32,
    pub(crate) strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    pub(crate) fabric: unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int,
    pub(crate) getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const fi_info,
        *mut *mut fi_info,
    ) -> c_int,
    pub(crate) freeinfo: unsafe extern "C" fn(*mut fi_info),
    pub(crate) dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
}

unsafe extern "C" {
    /// Of the C library: the symbol of a name and a version.
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// The library of this process, loaded at the first call; why there is none, else.
pub(crate) fn load() -> Result<Functions, String> {
    static LIBRARY: OnceLock<Result<Functions, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| open("libfabric.so.1")).clone()
}

fn open(name: &str) -> Result<Functions, String> {
    // SAFETY: `Library::open` asks that the library's initialisers may run. The name is one that the system's loader
    // resolves; whoever can change that can change this program as well. libfabric documents no condition on when it
    // may be loaded (fabric(7)).
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|error| error.to_string())?;
    // It stays loaded: providers have threads and exit handlers.
    let handle = library.into_raw();
    let functions = Functions {
        version: function(handle, c"fi_version", c"FABRIC_1.0")?,
        strerror: function(handle, c"fi_strerror", c"FABRIC_1.0")?,
        fabric: function(handle, c"fi_fabric", c"FABRIC_1.1")?,
        getinfo: function(handle, c"fi_getinfo", c"FABRIC_1.3")?,
        freeinfo: function(handle, c"fi_freeinfo", c"FABRIC_1.3")?,
        dupinfo: function(handle, c"fi_dupinfo", c"FABRIC_1.3")?,
    };
    // SAFETY: the function takes nothing and has no precondition (fi_version(3)).
    let version = unsafe { (functions.version)() };
    if version < API {
        return Err(format!("{name} is version {}.{}, 1.17 is needed", version >> 16, version & 0xffff));
    }
    Ok(functions)
}

/// The function of this name and version; `F` is the type of the field of [`Functions`] it goes to.
fn function<F: Copy>(handle: *mut c_void, name: &CStr, version: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is that of a library that stays loaded, both names end with a zero (dlvsym(3)).
    let symbol = unsafe { dlvsym(handle, name.as_ptr(), version.as_ptr()) };
    if symbol.is_null() {
        return Err(format!(
            "libfabric.so.1 has no {} of version {}",
            name.to_string_lossy(),
            version.to_string_lossy()
        ));
    }
    // SAFETY: both have the size of a pointer. The callers pair each name and version with the field whose type is that
    // of the declaration in `rdma/fabric.h` of 1.17; the version of a symbol stands for its interface.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&symbol) })
}

#[cfg(test)]
mod tests {
    use super::open;

    #[test]
    fn libraries_that_are_missing_or_others_are_named() {
        let missing = open("libfabric-of-nobody.so.1").unwrap_err();
        assert!(missing.contains("libfabric-of-nobody.so.1"), "{missing}");
        let other = open("libc.so.6").unwrap_err();
        assert!(other.contains("fi_version"), "{other}");
    }
}
