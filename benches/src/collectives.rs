//! Collectives on f32 vectors beside MPI libraries, from 8 bytes to 64 MiB.
//!
//! Every series starts the ranks anew, ours and each peer's in turn, bound to the same cores where each rank can have one. The
//! time of a call is the maximum over the ranks, each call begins at a barrier, and the buffers hold zeros while times are taken,
//! so that sums neither overflow nor become subnormal; whether results are right is checked before with other values.

mod rank;

use crate::options::Options;
use crate::table::{self, Row};
use crate::{peers, ranks};
use clap::Args;
use std::io;

/// Which collectives, and how they are measured.
#[derive(Args, Clone, Debug)]
pub struct Collectives {
    /// Which: a list.
    #[arg(long = "op", value_delimiter = ',', default_value = "broadcast,all_gather,reduce_scatter,barrier")]
    operations: Vec<String>,
    #[command(flatten)]
    options: Options,
}

/// Measures all_reduce, and prints.
///
/// # Errors
///
/// Those of [`run`].
pub fn run_all_reduce(options: &Options) -> io::Result<()> {
    run(&Collectives { operations: vec!["all_reduce".to_owned()], options: options.clone() })
}

/// Measures, and prints.
///
/// # Errors
///
/// When ranks cannot be started, fail, or the sizes make no sense.
pub fn run(collectives: &Collectives) -> io::Result<()> {
    let Collectives { operations, options } = collectives;
    let sizes = options.sizes("8,64,1k,8k,64k,512k,1M,4M,16M,64M")?;
    if let Some(transport) = &options.rank_of {
        return rank::run(transport, operations, &sizes);
    }
    let peers = peers::prepare("collectives", &options.peers)?;
    let mut rows: Vec<Row> = Vec::new();
    let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let op = ["--op".to_owned(), operations.join(",")];
    let theirs: Vec<String> = [operations.join(",")].into_iter().chain(words.iter().cloned()).collect();
    for _ in 0..options.series.max(1) {
        for transport in &options.transport {
            let mut measured = ranks::run("collectives", &op, transport, options.ranks, &words)?;
            measured.extend(peers.iter().flat_map(|peer| peer.run(transport, options.ranks, &theirs)));
            measured.into_iter().for_each(|row| table::keep_best(&mut rows, row));
        }
    }
    table::print(&rows, options.csv);
    Ok(())
}
