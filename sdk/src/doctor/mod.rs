//! What a machine offers to a job, and what to do where it offers too little.
//!
//! [`examine`] looks at the machine without changing it; the transports are tried for real, then dropped.
#![forbid(unsafe_code)]

mod machine;
mod network;
mod system;
#[cfg(test)]
mod tests;

#[cfg(feature = "libfabric")]
use crate::config::TransportChoice;
use crate::{Config, Result, bootstrap, transports};
use gradwire_transport::Transport;
use std::fmt;
use system::System;

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at: `processors`.
    pub topic: &'static str,
    /// What is there, in words.
    pub found: String,
    /// What to do about it, where it is too little.
    pub advice: Option<Advice>,
}

/// A shortage, and what helps against it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Advice {
    /// What will go wrong, or be slow.
    pub problem: String,
    /// What to change.
    pub remedy: String,
}

/// Looks at this machine and at what launchers have left in the environment of this process.
pub fn examine(config: &Config) -> Vec<Finding> {
    let system = System::of_this_machine();
    let mut findings = vec![
        machine::processors(&system),
        machine::memory_nodes(&system),
        machine::locked_memory(&system),
        machine::open_files(&system),
        machine::huge_pages(&system),
        machine::cross_memory_attach(&system),
        network::interfaces(&system),
        network::rdma_devices(&system),
        network::congestion_control(&system),
    ];
    findings.extend(paths(config));
    findings.push(launcher(config));
    findings
}

/// The transports, each opened as a job would open it.
fn paths(config: &Config) -> Vec<Finding> {
    vec![
        #[cfg(feature = "shm")]
        tried("shared memory", transports::shm(None)),
        #[cfg(feature = "libfabric")]
        fabric(config),
        #[cfg(feature = "tcp")]
        tried("tcp", transports::tcp(config, None)),
    ]
}

/// Looked for where a job would look for it.
#[cfg(feature = "libfabric")]
fn fabric(config: &Config) -> Finding {
    const TOPIC: &str = "libfabric";
    match config.transport {
        TransportChoice::Auto if !transports::may_have_card(config) => Finding::new(
            TOPIC,
            "not used, as there is no RDMA card; GRADWIRE_TRANSPORT=libfabric uses it all the same",
        ),
        TransportChoice::Auto | TransportChoice::Libfabric => {
            tried(TOPIC, transports::libfabric(config, None))
        }
        _ => Finding::new(TOPIC, "not asked for"),
    }
}

fn tried(topic: &'static str, opened: Result<Box<dyn Transport>>) -> Finding {
    match opened {
        Ok(_) => Finding::new(topic, "works"),
        Err(error) => Finding::new(topic, "cannot be used").advised(
            error.to_string(),
            "allow what the system refuses, or choose another transport by GRADWIRE_TRANSPORT",
        ),
    }
}

fn launcher(config: &Config) -> Finding {
    const TOPIC: &str = "launcher";
    match bootstrap::sightings(config) {
        Ok(found) if found.is_empty() => Finding::new(TOPIC, "none: a process on its own"),
        Ok(found) => Finding::new(TOPIC, found.join("; ")),
        Err(error) => Finding::new(TOPIC, "variables that make no sense").advised(
            error.to_string(),
            "unset what is left over, or set GRADWIRE_RANK, GRADWIRE_SIZE and GRADWIRE_ADDRESS",
        ),
    }
}

impl Finding {
    fn new(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, found: found.into(), advice: None }
    }

    fn advised(mut self, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.advice = Some(Advice { problem: problem.into(), remedy: remedy.into() });
        self
    }
}

impl fmt::Display for Finding {
    /// `processors: 2 of 8`, and on further lines the advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.topic, self.found)?;
        match &self.advice {
            Some(Advice { problem, remedy }) => write!(f, "\n  warning: {problem}\n  remedy: {remedy}"),
            None => Ok(()),
        }
    }
}
