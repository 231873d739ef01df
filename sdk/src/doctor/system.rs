//! Where the findings come from: the files of the kernel, and the limits of this process.

use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A machine as its kernel shows it.
#[derive(Debug)]
pub(super) struct System {
    /// In which `proc` and `sys` lie.
    pub(super) root: PathBuf,
    /// The processors this process may run on.
    pub(super) allowed_processors: usize,
    /// Bytes; `None` is without limit.
    pub(super) locked_memory: Option<u64>,
    pub(super) open_files: Option<u64>,
    pub(super) is_root: bool,
}

impl System {
    pub(super) fn of_this_machine() -> Self {
        let allowed = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count() as usize);
        Self {
            root: PathBuf::from("/"),
            allowed_processors: allowed,
            locked_memory: getrlimit(Resource::Memlock).current,
            open_files: getrlimit(Resource::Nofile).current,
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    /// The content of a file without the blanks around it, if it can be read and is not empty.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(super) fn number<N: FromStr>(&self, path: impl AsRef<Path>) -> Option<N> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder, sorted; none if there is no such folder.
    pub(super) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

/// `8 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift != 0) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

/// The word in brackets of a kernel setting: `always` of `[always] madvise never`.
pub(super) fn chosen(setting: &str) -> Option<&str> {
    setting.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}
