//! All-reduce of f32 sums beside Open MPI, from 8 bytes to 64 MiB.
//!
//! Every series starts the ranks anew, ours and the peer's in turn, on the same cores. The time of a call is the
//! maximum over the ranks, each call begins at a barrier, and the buffers hold zeros while times are taken, so
//! that sums neither overflow nor become subnormal; whether results are right is checked before with other values.

mod peer;
mod rank;
mod table;

use clap::Args;
use gradwire::launch::{Launcher, OnFailure, Output};
use std::io;
use table::Row;

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
    let sizes = options.sizes.iter().map(|text| parse_size(text)).collect::<io::Result<Vec<usize>>>()?;
    if let Some(transport) = &options.rank_of {
        return rank::run(transport, &sizes);
    }
    let peer = if options.peers.contains("openmpi") { peer::prepare()? } else { None };
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..options.series.max(1) {
        for transport in &options.transport {
            ours(options, transport)?.into_iter().for_each(|row| table::keep_best(&mut rows, row));
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

fn ours(options: &Options, transport: &str) -> io::Result<Vec<Row>> {
    let results = tempfile(transport);
    let program = std::env::current_exe()?;
    let report = Launcher::new(program)
        .arguments(["all-reduce", "--rank-of", transport, "--sizes", &options.sizes.join(",")])
        .ranks(options.ranks)
        .variable("GRADWIRE_TRANSPORT", transport)
        .variable(rank::RESULTS, &results)
        .on_failure(OnFailure::Stop)
        .output(Output::Inherited)
        .run()
        .map_err(io::Error::other)?;
    if report.exit_code() != 0 {
        return Err(io::Error::other(report.to_string()));
    }
    let text = std::fs::read_to_string(&results)?;
    std::fs::remove_file(&results)?;
    text.lines().map(Row::parse).collect()
}

fn tempfile(transport: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("gradwire-bench-{}-{transport}.csv", std::process::id()))
}

/// `8`, `64k`, `4M`.
fn parse_size(text: &str) -> io::Result<usize> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let size: usize =
        digits.parse().map_err(|_| io::Error::other(format!("{text} is no size: write 8, 64k or 4M")))?;
    if size == 0 || !(size * unit).is_multiple_of(size_of::<f32>()) {
        return Err(io::Error::other(format!("{text} is no multiple of 4 bytes above 0")));
    }
    Ok(size * unit)
}
