//! Messages between two ranks beside Open MPI, from 8 bytes to 16 MiB.
//!
//! Every series starts the ranks anew, ours and the peer's in turn, on the same cores. `ping_pong` is half of the time that
//! a message takes there and back; `stream` is the time of one of sixteen messages that are under way at the same time, the
//! last of which is answered. Whether what arrives is right is checked before times are taken.

mod rank;

use crate::openmpi;
use crate::ranks::{self, parse_sizes};
use crate::table::{self, Row};
use clap::Args;
use std::io;

/// Two ranks talk to each other.
const RANKS: usize = 2;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Comma-separated values instead of a table.
    #[arg(long)]
    csv: bool,
    /// Over what: `shm`, `tcp`, or both.
    #[arg(long, value_delimiter = ',', default_value = "shm,tcp")]
    transport: Vec<String>,
    /// Bytes: a list, with suffixes k and M.
    #[arg(long, value_delimiter = ',', default_value = "8,64,512,2k,4k,8k,16k,32k,64k,256k,1M,4M,16M")]
    sizes: Vec<String>,
    /// How often everything is measured; of each row the series with the lowest median counts.
    #[arg(long, default_value_t = 3)]
    series: usize,
    /// Whom to measure beside: `openmpi` or `none`.
    #[arg(long, default_value = "openmpi")]
    peers: String,
    /// Internal: this process is one of the ranks.
    #[arg(long, hide = true)]
    rank_of: Option<String>,
}

/// Measures, and prints.
///
/// # Errors
///
/// When ranks cannot be started, fail, or the sizes make no sense.
pub fn run(options: &Options) -> io::Result<()> {
    let sizes = parse_sizes(&options.sizes)?;
    if let Some(transport) = &options.rank_of {
        return rank::run(transport, &sizes);
    }
    let peer = if options.peers.contains("openmpi") { openmpi::prepare("p2p")? } else { None };
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..options.series.max(1) {
        for transport in &options.transport {
            let ours = ranks::run("p2p", transport, RANKS, &options.sizes)?;
            let theirs = peer.as_ref().map(|peer| peer.run(transport, RANKS, &sizes)).transpose()?;
            ours.into_iter()
                .chain(theirs.into_iter().flatten())
                .for_each(|row| table::keep_best(&mut rows, row));
        }
    }
    table::print(&rows, options.csv);
    Ok(())
}
