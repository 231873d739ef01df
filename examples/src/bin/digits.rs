//! Trains a network to read handwritten digits, on several ranks, and checks that it is the network that one process would
//! have trained.
//!
//! Started by itself, it starts its own ranks on this host. Started by `gradwire run`, `mpirun` or another launcher, it is one
//! of their ranks.
#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use gradwire::config::TransportChoice;
use gradwire::launch::{self, Launcher, Output};
use gradwire::{Communicator, Config, Rank, Sum};
use gradwire_examples::digits::report::{self, Progress};
use gradwire_examples::digits::{DataError, Images, Network, Settings, Verdict, check, train};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

/// Trains a network to read handwritten digits on several ranks, and checks the result.
#[derive(Parser)]
struct Arguments {
    /// How many ranks to start; under a launcher, how many it must have started.
    #[arg(long)]
    ranks: Option<usize>,
    /// How the gradients travel. Whatever is fastest, if nothing is said.
    #[arg(long)]
    transport: Option<Transport>,
    /// How often to go through the training images.
    #[arg(long, default_value_t = EPOCHS)]
    epochs: usize,
    /// Damages one value of this rank's gradients in the last step, after they were reduced: the program must notice.
    #[arg(long, value_name = "RANK")]
    corrupt_rank: Option<Rank>,
    /// The images.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/data/digits.csv"), hide_default_value = true)]
    data: PathBuf,
}

/// Enough for the accuracy that is asked for.
const EPOCHS: usize = 8;

#[derive(Clone, Copy, ValueEnum)]
enum Transport {
    /// Shared memory: all ranks on one host.
    Shm,
    /// TCP, also within a host.
    Tcp,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Gradwire(#[from] gradwire::Error),
    #[error("the threads for computing cannot be started: {0}")]
    Threads(#[from] ThreadPoolBuildError),
    #[error("{0}")]
    Arguments(String),
    #[error(transparent)]
    Verdict(#[from] Verdict),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let code = launch::is_launched()
        .map_err(Error::from)
        .and_then(|is_launched| if is_launched { join(&arguments) } else { start(&arguments) });
    let code = code.unwrap_or_else(|error| {
        eprintln!("digits: {error}");
        1
    });
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

// ANCHOR: start
/// Starts this program again, once for each rank, and waits for all of them.
fn start(arguments: &Arguments) -> Result<i32, Error> {
    Images::load(&arguments.data)?; // What is wrong with the data is said once here, not by every rank.
    let ranks = arguments.ranks.unwrap_or(2);
    let report = Launcher::this_program()?.ranks(ranks).output(Output::Inherited).run()?;
    if !report.is_success() {
        eprintln!("digits: {report}");
    }
    Ok(report.exit_code())
}
// ANCHOR_END: start

// ANCHOR: join
/// Joins the job as one of its ranks, whoever started it.
fn join(arguments: &Arguments) -> Result<i32, Error> {
    let mut config = Config::from_environment()?;
    match arguments.transport {
        Some(Transport::Shm) => config.transport = TransportChoice::Shm,
        Some(Transport::Tcp) => config.transport = TransportChoice::Tcp,
        None => {}
    }
    let comm = gradwire::init_with(&config)?;
    match rank(&comm, arguments) {
        Ok(()) => Ok(0),
        // All ranks come to the same verdict; one says it.
        Err(Error::Verdict(_)) if comm.rank() > 0 => Ok(1),
        Err(error) => {
            eprintln!("digits, rank {}: {error}", comm.rank());
            Ok(1)
        }
    }
}
// ANCHOR_END: join

fn rank(comm: &Communicator, arguments: &Arguments) -> Result<(), Error> {
    check_arguments(arguments, comm)?;
    let (images, test) = Images::load(&arguments.data)?;
    let is_first = comm.rank() == 0;
    let threads = own_cores(comm);
    let settings =
        Settings { images: &images, epochs: arguments.epochs, corrupt_rank: arguments.corrupt_rank };

    let mut progress = Progress::new("training", &settings, is_first);
    if is_first {
        report::print_heading(comm, &settings, threads);
    }
    let trained = train(comm, &pool(threads)?, &settings, |gradients| progress.step(gradients))?;
    progress.finish();
    let (right, tested) = test_together(comm, &trained.network, &test)?;
    let reference = if is_first { train_alone(&settings)? } else { Network::zeros() };

    let accounts = check::accounts(comm, &trained, reference)?;
    if is_first {
        report::print(&accounts, right, tested);
    }
    check::compare(&accounts)?;
    let accuracy = right as f64 / tested as f64;
    if accuracy < check::ACCURACY && arguments.epochs >= EPOCHS {
        return Err(Verdict::Inaccurate(accuracy).into());
    }
    if is_first {
        report::print_verdict();
    }
    Ok(())
}

// ANCHOR: test
/// Tests a part of the images on each rank; all get the sums.
fn test_together(comm: &Communicator, network: &Network, test: &Images) -> gradwire::Result<(u64, u64)> {
    let own: Vec<usize> = (0..test.len()).skip(comm.rank()).step_by(comm.size()).collect();
    let mut counts = [network.count_right(&test.select(&own)) as u64, own.len() as u64];
    comm.all_reduce(&mut counts, Sum)?;
    Ok((counts[0], counts[1]))
}
// ANCHOR_END: test

/// The same training in one process, by rank 0 while the others wait: their cores are free.
fn train_alone(settings: &Settings<'_>) -> Result<Network, Error> {
    let settings = Settings { corrupt_rank: None, ..*settings };
    let mut progress = Progress::new("comparing", &settings, true).without_lines();
    let cores = pool(available_cores())?;
    let trained = train(&Communicator::single()?, &cores, &settings, |gradients| progress.step(gradients))?;
    progress.finish();
    Ok(trained.network)
}

fn check_arguments(arguments: &Arguments, comm: &Communicator) -> Result<(), Error> {
    let size = comm.size();
    if arguments.ranks.is_some_and(|ranks| ranks != size) {
        let text =
            format!("the launcher has started {size} ranks: leave --ranks away, or say --ranks {size}");
        return Err(Error::Arguments(text));
    }
    if arguments.corrupt_rank.is_some_and(|rank| rank >= size) {
        return Err(Error::Arguments(format!("--corrupt-rank must be from 0 to {}", size - 1)));
    }
    Ok(())
}

/// This rank's share of the cores: ranks that compute on each other's cores only get in each other's way. A launcher that
/// binds each rank to its own cores has shared them out already, which one core tells, but not more.
fn own_cores(comm: &Communicator) -> usize {
    (available_cores() / comm.local_size()).max(1)
}

fn available_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn pool(threads: usize) -> Result<ThreadPool, Error> {
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}
