//! Starting the ranks of a job, on this host or through a remote shell on several.
//!
//! ```no_run
//! use gradwire::launch::{Launcher, OnFailure};
//!
//! # fn main() -> gradwire::Result<()> {
//! let report = Launcher::new("target/release/digits").argument("--epochs=3").ranks(2).run()?;
//! println!("{report}");
//! std::process::exit(report.exit_code());
//! # }
//! ```
//!
//! A program can start its own ranks: [`is_launched`] tells the ranks from the process that starts them, and
//! [`Launcher::this_program`] starts the same program with the same arguments.
//!
//! The launcher hosts the place where the ranks meet and hands them the secret of the job. It gives each rank
//! a process group of its own, prefixes the lines the rank writes, and when a rank fails ends the others after
//! a grace period in which they can report what they saw. Ranks do not outlive their launcher, however it
//! ends: the kernel kills them (`PR_SET_PDEATHSIG`, which a rank asks for itself when it looks for its place).
//!
//! The library installs no signal handler. A launcher program that does (as `gradwire run`) passes what it
//! receives on through an [`Interrupter`].

mod environment;
mod hosts;
mod interrupt;
mod launcher;
mod output;
mod report;
mod supervisor;
#[cfg(test)]
mod tests;
mod tie;

#[cfg(test)]
pub(crate) use environment::of_rank;
pub(crate) use environment::{LAUNCHER_VARIABLE, is_hosted};
pub use hosts::Hosts;
pub use interrupt::{Interrupter, Signal};
pub use launcher::{Launcher, OnFailure, Output};
pub use report::{Ending, Report};
pub use tie::tie_to;
pub(crate) use tie::tie_to_launcher;

use crate::bootstrap::is_rank;
use crate::{Config, Result};

/// Whether this process was started as a rank: by a [`Launcher`], by another launcher that
/// [`bootstrap`](crate::bootstrap) knows, or by hand through the settings.
pub fn is_launched() -> Result<bool> {
    is_rank(&Config::from_environment()?)
}
