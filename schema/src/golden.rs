//! Golden files: the exact bytes of every format, in `schema/golden/`.
//!
//! A test that fails here says that the format has changed. If that was meant, change its version, and write the
//! files anew with `GRADWIRE_BLESS=1`.

use std::fs;
use std::path::{Path, PathBuf};

/// Compares `bytes` with the file `name`.
#[track_caller]
pub(crate) fn check(name: &str, bytes: &[u8]) {
    if std::env::var_os("GRADWIRE_BLESS").is_some() {
        fs::write(path(name), bytes).unwrap();
    }
    let golden = read(name);
    let differing = golden.iter().zip(bytes).position(|(a, b)| a != b);
    assert!(
        golden == bytes,
        "{name} has {} bytes, golden are {}; the first difference is at {differing:?}\n{bytes:02x?}",
        bytes.len(),
        golden.len(),
    );
}

/// The bytes of the file `name`.
#[track_caller]
pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = path(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}
