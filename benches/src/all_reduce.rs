//! All-reduce of f32 sums beside Open MPI, from 8 bytes to 64 MiB.
//!
//! Every series starts the ranks anew, ours and the peer's in turn, on the same cores. The time of a call is the
//! maximum over the ranks, each call begins at a barrier, and the buffers hold zeros while times are taken, so
//! that sums neither overflow nor become subnormal; whether results are right is checked before with other values.

mod rank;

use crate::openmpi;
use crate::ranks::{self, parse_sizes};
use crate::table::{self, Row};
use clap::Args;
use std::io;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Comma-separated values instead of a table.
    #[arg(long)]
    csv: bool,
    /// Over what: `shm`, `tcp`, or both.
    #[arg(long, value_delimiter = ',', default_value = "shm,tcp")]
    transport: Vec<String>,
    /// How many ranks.
    #[arg(long, default_value_t = 2)]
    ranks: usize,
    /// Bytes: a list, with suffixes k and M.
    #[arg(long, value_delimiter = ',', default_value = "8,64,1k,8k,64k,512k,1M,4M,16M,64M")]
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
    let peer = if options.peers.contains("openmpi") { openmpi::prepare("all_reduce")? } else { None };
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..options.series.max(1) {
        for transport in &options.transport {
            ranks::run("all-reduce", transport, options.ranks, &options.sizes)?
                .into_iter()
                .for_each(|row| table::keep_best(&mut rows, row));
            if let Some(peer) = &peer {
                peer.run(transport, options.ranks, &sizes)?
                    .into_iter()
                    .for_each(|row| table::keep_best(&mut rows, row));
            }
        }
    }
    table::print(&rows, options.csv);
    Ok(())
}
