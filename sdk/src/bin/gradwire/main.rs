//! The launcher: `gradwire run -n 2 -- PROGRAM ARGUMENTS`.
#![forbid(unsafe_code)]

mod doctor;

use clap::{Args, Parser, ValueEnum};
use doctor::Doctor;
use gradwire::config::{Environment, duration};
use gradwire::launch::{Hosts, Interrupter, Launcher, OnFailure, Signal, tie_to};
use gradwire::{Config, Error, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};
use std::sync::Arc;
use std::time::Duration;

/// Starts the ranks of a Gradwire job.
#[derive(Parser)]
#[command(name = "gradwire", version)]
enum Cli {
    /// Starts ranks of a program, on this host or several, and waits for them.
    Run(Run),
    /// Says what this machine offers. Started as a rank: says which place it finds, and meets the others.
    Doctor(Doctor),
    /// Ties a rank to its launcher, then becomes the program. For `run` itself.
    #[command(hide = true)]
    Tie(Tie),
}

#[derive(Args)]
struct Run {
    /// How many ranks to start.
    #[arg(short = 'n', long)]
    ranks: usize,
    /// Hosts to start them on, in blocks: a,b,c. The default is this one.
    #[arg(long, value_delimiter = ',', requires_all = ["rsh", "address"], value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Leads to a host, as `ip netns exec {host}`, or with a shell there `ssh {host} {command}`.
    #[arg(long, requires = "hosts", value_name = "COMMAND")]
    rsh: Option<String>,
    /// Where the launcher listens for its ranks: an address of this host that all hosts reach.
    #[arg(long, requires = "hosts", value_name = "HOST:PORT")]
    address: Option<String>,
    /// What happens to the other ranks when one fails.
    #[arg(long, default_value = "stop")]
    on_failure: Policy,
    /// How long ranks have to end by themselves after another has failed, or after Ctrl-C.
    #[arg(long, default_value = "5s", value_parser = duration)]
    grace: Duration,
    /// The deadline of every blocking call (GRADWIRE_TIMEOUT).
    #[arg(long)]
    timeout: Option<String>,
    /// How the data travels: auto, shm, libfabric or tcp (GRADWIRE_TRANSPORT).
    #[arg(long)]
    transport: Option<String>,
    /// What the ranks log: error, warn, info, debug or trace (GRADWIRE_LOG).
    #[arg(long)]
    log: Option<String>,
    /// The program and its arguments. `--` in front of it is good style, and only needed if it begins with `-`.
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(Args)]
struct Tie {
    /// The process number of the launcher.
    launcher: u32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Policy {
    /// They have the grace period to report and end, then they are ended.
    Stop,
    /// They go on.
    Continue,
}

fn main() {
    let outcome = match Cli::parse() {
        Cli::Run(arguments) => run(arguments),
        Cli::Doctor(arguments) => doctor::run(&arguments),
        Cli::Tie(arguments) => tie(&arguments),
    };
    match outcome {
        Ok(code) => exit(code),
        Err(error) => {
            say(&error);
            exit(NOT_STARTED);
        }
    }
}

fn run(arguments: Run) -> Result<i32> {
    let settings = [
        ("GRADWIRE_TIMEOUT", arguments.timeout),
        ("GRADWIRE_TRANSPORT", arguments.transport),
        ("GRADWIRE_LOG", arguments.log),
    ];
    let settings = settings.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let settings: Vec<(&str, String)> = settings.collect();
    // Said once here rather than by every rank.
    Config::read(settings.iter().map(|(name, value)| (*name, value.as_str())).collect::<Environment>())?;

    let mut launcher = if arguments.hosts.is_empty() {
        let this_program = std::env::current_exe().map_err(|error| system(&error))?;
        let tie = ["tie".to_owned(), std::process::id().to_string(), "--".to_owned()];
        Launcher::new(this_program).arguments(tie).arguments(arguments.command)
    } else {
        // Elsewhere there may be no such launcher, and this one is not the parent.
        let mut words = arguments.command.into_iter();
        let (rsh, address) = (arguments.rsh.unwrap_or_default(), arguments.address.unwrap_or_default());
        Launcher::new(words.next().unwrap_or_default()).arguments(words).hosts(Hosts::new(
            arguments.hosts,
            &rsh,
            &address,
        )?)
    };
    launcher =
        launcher.ranks(arguments.ranks).grace(arguments.grace).on_failure(match arguments.on_failure {
            Policy::Stop => OnFailure::Stop,
            Policy::Continue => OnFailure::Continue,
        });
    for (name, value) in settings {
        launcher = launcher.variable(name, value);
    }
    pass_signals_on(launcher.interrupter()?)?;
    let report = launcher.run()?;
    if !report.is_success() {
        say(&report);
    }
    Ok(report.exit_code())
}

/// Ctrl-C and SIGTERM go to the ranks; the second one ends them at once. A hang-up of the terminal ends the
/// launcher, and with it the ranks.
fn pass_signals_on(interrupter: Interrupter) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| system(&error))?;
    let thread = std::thread::Builder::new().name("gradwire-signals".into()).spawn(move || {
        signals.forever().filter_map(Signal::from_number).for_each(|signal| interrupter.interrupt(signal));
    });
    thread.map(drop).map_err(|error| system(&error))
}

fn tie(arguments: &Tie) -> Result<i32> {
    tie_to(arguments.launcher)?;
    let (program, rest) =
        arguments.command.split_first().ok_or_else(|| Error::Misuse(Arc::from("no program")))?;
    let error = Command::new(program).args(rest).exec();
    let program = program.to_string_lossy();
    Err(Error::System(Arc::from(format!("the program {program} cannot be started: {error}"))))
}

/// Where nobody listens any more, nothing is said: no reason to panic.
fn say(what: &impl Display) {
    let _ = writeln!(std::io::stderr(), "gradwire: {what}");
}

fn system(error: &std::io::Error) -> Error {
    Error::System(Arc::from(error.to_string()))
}

/// As shells do when a command is not found.
const NOT_STARTED: i32 = 127;
