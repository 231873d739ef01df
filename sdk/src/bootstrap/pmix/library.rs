//! The functions of `libpmix.so.2` that start-up needs, as its headers declare them (`pmix.h`, `pmix_common.h`), and how
//! they are found.
//!
//! Their binary interface has been the same since PMIx 3; the standard keeps it from 5.0 on.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

/// The data structures below are those of 64 bits.
const _: () = assert!(size_of::<usize>() == 8, "PMIx needs 64 bits");

pub(super) const SUCCESS: c_int = 0;
/// `PMIX_BOOL`, `PMIX_BYTE_OBJECT`.
pub(super) const BOOL: u16 = 1;
pub(super) const BYTES: u16 = 27;
/// `PMIX_GLOBAL`: for the processes of all hosts.
pub(super) const GLOBAL: u8 = 3;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone)]
pub(super) struct Process {
    pub(super) space: [u8; 256],
    pub(super) rank: u32,
}

/// `pmix_value_t`, whose union holds a truth value in the first byte, or a byte object: an address and a length.
#[repr(C)]
pub(super) struct Value {
    pub(super) kind: u16,
    pub(super) bytes: *mut c_void,
    pub(super) len: usize,
    /// The union's longest member has three words.
    pub(super) rest: usize,
}

/// `pmix_info_t`.
#[repr(C)]
pub(super) struct Info {
    pub(super) key: [u8; 512],
    pub(super) flags: u32,
    pub(super) value: Value,
}

/// The library's functions. Each says 0 when all went well.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) init: unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int,
    pub(super) put: unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int,
    pub(super) commit: unsafe extern "C" fn() -> c_int,
    pub(super) fence: unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int,
    pub(super) get:
        unsafe extern "C" fn(*const Process, *const c_char, *const Info, usize, *mut *mut Value) -> c_int,
    pub(super) finalize: unsafe extern "C" fn(*const Info, usize) -> c_int,
    /// The C library's, which owns what `get` hands out.
    pub(super) free: unsafe extern "C" fn(*mut c_void),
}

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// Loads the first of these libraries that there is.
pub(super) fn load(candidates: &[PathBuf]) -> Result<Functions, String> {
    let mut reasons = Vec::new();
    for path in candidates {
        match open(path).and_then(|library| functions(library, path)) {
            Ok(functions) => return Ok(functions),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(format!("its library cannot be loaded ({})", reasons.join("; ")))
}

fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: `Library::open` asks that the library's initialisers may run. The path is the user's, the launcher's or
    // the system loader's; whoever can choose one of these can choose this program as well. PMIx documents no condition
    // on when it may be loaded.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    library.map_err(|error| format!("{}: {error}", path.display()))
}

fn functions(library: Library, path: &Path) -> Result<Functions, String> {
    let functions = Functions {
        init: symbol(&library, c"PMIx_Init", path)?,
        put: symbol(&library, c"PMIx_Put", path)?,
        commit: symbol(&library, c"PMIx_Commit", path)?,
        fence: symbol(&library, c"PMIx_Fence", path)?,
        get: symbol(&library, c"PMIx_Get", path)?,
        finalize: symbol(&library, c"PMIx_Finalize", path)?,
        free,
    };
    // It stays loaded: its threads may outlive its last call by a moment.
    std::mem::forget(library);
    Ok(functions)
}

/// The function of this name; `F` is one of the types of [`Functions`], that of the field it goes to.
fn symbol<F: Copy>(library: &Library, name: &CStr, path: &Path) -> Result<F, String> {
    // SAFETY: `get` asks that `F` be the type of the symbol. The callers pair each name with the field of `Functions` whose
    // type is that of the declaration in `pmix.h`, which is the same in PMIx 3 to 6, the versions whose library is called
    // `libpmix.so.2`.
    let symbol = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|_| format!("{} has no {}", path.display(), name.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn structures_are_laid_out_as_in_the_headers() {
        assert_eq!((size_of::<Process>(), offset_of!(Process, rank)), (260, 256));
        assert_eq!((size_of::<Value>(), offset_of!(Value, bytes), offset_of!(Value, len)), (32, 8, 16));
        assert_eq!((offset_of!(Info, flags), offset_of!(Info, value), size_of::<Info>()), (512, 520, 552));
    }

    #[test]
    fn libraries_that_are_missing_or_others_are_named() {
        let missing = PathBuf::from("/nonexistent/libpmix.so.2");
        let reason = load(&[missing]).err().unwrap();
        assert!(reason.contains("/nonexistent/libpmix.so.2"), "{reason}");
        let other = PathBuf::from("libc.so.6");
        let reason = load(&[other]).err().unwrap();
        assert!(reason.contains("libc.so.6 has no PMIx_Init"), "{reason}");
        let text = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let reason = load(&[text]).err().unwrap();
        assert!(reason.contains("Cargo.toml"), "{reason}");
    }
}
