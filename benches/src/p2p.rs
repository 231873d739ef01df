//! Messages between two ranks beside MPI libraries, from 8 bytes to 16 MiB.
//!
//! Every series starts the ranks anew, ours and each peer's in turn, bound to the same cores. `ping_pong` is half of the time that
//! a message takes there and back; `stream` is the time of one of sixteen messages that are under way at the same time, the
//! last of which is answered. Whether what arrives is right is checked before times are taken.

mod rank;

use crate::options::Options;
use crate::table::{self, Row};
use crate::{peers, ranks};
use std::io;

/// Two ranks talk to each other.
const RANKS: usize = 2;

/// Measures, and prints.
///
/// # Errors
///
/// When ranks cannot be started, fail, or the sizes make no sense.
pub fn run(options: &Options) -> io::Result<()> {
    let sizes = options.sizes("8,64,512,2k,4k,8k,16k,32k,64k,256k,1M,4M,16M")?;
    if let Some(transport) = &options.rank_of {
        return rank::run(transport, &sizes);
    }
    let peers = peers::prepare("p2p", &options.peers)?;
    let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..options.series.max(1) {
        for transport in &options.transport {
            let mut measured = ranks::run("p2p", &[], transport, RANKS, &words)?;
            measured.extend(peers.iter().flat_map(|peer| peer.run(transport, RANKS, &words)));
            measured.into_iter().for_each(|row| table::keep_best(&mut rows, row));
        }
    }
    table::print(&rows, options.csv);
    Ok(())
}
