//! A rank does not outlive its launcher.
#![forbid(unsafe_code)]

use super::LAUNCHER_VARIABLE;
use crate::config::{Environment, number, setting};
use crate::{Error, Result};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::sync::Arc;

/// Asks the kernel to kill this process when its parent ends, if the parent is the launcher.
///
/// A rank behind a wrapper is left alone: the kernel watches the very thread that started a process, and a
/// wrapper may well start it from a thread that ends earlier.
pub(crate) fn tie_to_launcher(environment: &Environment) -> Result<()> {
    let Some(value) = environment.get(LAUNCHER_VARIABLE) else { return Ok(()) };
    let text = value.to_string_lossy();
    let launcher = number(&text).and_then(|number| u32::try_from(number).ok());
    let launcher = launcher.ok_or_else(|| setting(LAUNCHER_VARIABLE, &text, "the number of a process"))?;
    if parent() == Some(launcher) { tie_to(launcher) } else { Ok(()) }
}

/// Asks the kernel to kill this process when its parent ends, which has to be the process `launcher`.
///
/// The request survives `exec`, so a small program in between can tie a program that knows nothing of it.
pub fn tie_to(launcher: u32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        Error::System(Arc::from(format!("this rank cannot be tied to its launcher: {error}")))
    })?;
    // It may have ended before it was watched: then somebody else is the parent by now.
    if parent() == Some(launcher) {
        return Ok(());
    }
    Err(Error::Bootstrap(Arc::from(format!("the launcher of this rank (process {launcher}) has ended"))))
}

fn parent() -> Option<u32> {
    u32::try_from(getppid()?.as_raw_nonzero().get()).ok()
}
