//! The variables of a process, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// A snapshot of the environment variables that matter to start-up: our own and those of launchers.
///
/// Taken once, so that a later change of the environment changes nothing, and replaceable, so that a test
/// needs no process of its own.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// The variables of this process.
    pub fn of_process() -> Self {
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect()
    }

    /// The value of a variable, if it is set.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// The names of all variables, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(variables.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix))).collect())
    }
}

impl fmt::Debug for Environment {
    /// Names only: launchers put credentials into values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The variables start-up may look at.
const PREFIXES: [&str; 14] = [
    "GRADWIRE_",
    "PMI_",
    "PMIX_",
    "MPI_LOCAL",
    "OMPI_COMM_WORLD_",
    "OMPI_LIBDIR_LOC",
    "SLURM_",
    "TORCHELASTIC_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
];
