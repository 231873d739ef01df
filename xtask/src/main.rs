//! Project tasks: `cargo xtask test` runs every check there is.
#![forbid(unsafe_code)]

mod book;
mod command;
mod conformance;
mod packages;
mod session;
mod tally;
mod test;

use clap::{Parser, Subcommand};
use command::{Failure, Outcome, cargo, run};
use std::process::ExitCode;

/// Project tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs every check: formatting, lints, tests, documentation, the book and the digits program.
    ///
    /// Where it runs as root on Debian it first installs the packages that tests need; elsewhere it names those
    /// that are missing, and what is not tested without them.
    Test,
    /// Builds the book into target/book and checks it.
    Book,
    /// Makes the same random calls through Gradwire and through an MPI library, and compares the results.
    ///
    /// The last line says how many calls were made, and in how many any rank saw a difference.
    Conformance(conformance::Conformance),
    /// Prints a table of measurements.
    Bench {
        /// Which one, for example `wire` or `all-reduce`.
        name: String,
        /// Passed on to it, for example `--csv`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Test => return test::run_all(),
        Task::Book => book::build(),
        Task::Conformance(conformance) => conformance.run(),
        Task::Bench { name, arguments } => bench(&name, &arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The verdict was the last line.
        Err(Failure::Differing(_)) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn bench(name: &str, arguments: &[String]) -> Outcome {
    let mut command =
        cargo(["run", "--release", "--package", "gradwire-bench", "--all-features", "--", name]);
    run(command.args(arguments))
}
