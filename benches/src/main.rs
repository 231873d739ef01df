//! Runs one of the benches.

use clap::{Parser, Subcommand};
use gradwire_bench::{all_reduce, kernels, p2p, wire};

#[derive(Parser)]
#[command(about = "Performance tables of Gradwire")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// All-reduce beside Open MPI.
    AllReduce(all_reduce::Options),
    /// Messages between two ranks beside Open MPI.
    P2p(p2p::Options),
    /// Encoding and decoding beside rkyv, FlatBuffers, bincode and prost.
    Wire {
        /// Comma-separated values instead of a table.
        #[arg(long)]
        csv: bool,
    },
    /// Reduce kernels and conversions on one core, beside memcpy and a plain loop.
    Kernels {
        /// Comma-separated values instead of a table.
        #[arg(long)]
        csv: bool,
    },
}

fn main() -> std::io::Result<()> {
    match Arguments::parse().bench {
        Bench::AllReduce(options) => all_reduce::run(&options),
        Bench::P2p(options) => p2p::run(&options),
        Bench::Wire { csv } => wire::run(csv),
        Bench::Kernels { csv } => kernels::run(csv),
    }
}
