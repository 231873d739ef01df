//! Runs one of the benches.

use clap::{Parser, Subcommand};
use gradwire_bench::{Options, collectives, kernels, p2p, wire};

#[derive(Parser)]
#[command(about = "Performance tables of Gradwire")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// All-reduce beside MPI libraries.
    AllReduce(Options),
    /// Other collectives beside MPI libraries.
    Collectives(collectives::Collectives),
    /// Messages between two ranks beside MPI libraries.
    P2p(Options),
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
        Bench::AllReduce(options) => collectives::run_all_reduce(&options),
        Bench::Collectives(options) => collectives::run(&options),
        Bench::P2p(options) => p2p::run(&options),
        Bench::Wire { csv } => wire::run(csv),
        Bench::Kernels { csv } => kernels::run(csv),
    }
}
