//! The server's thread, and who runs it.
#![forbid(unsafe_code)]

use super::endpoint::Listener;
use super::lobby::{Gathering, Lobby};
use super::rounds::Rounds;
use crate::config::MeetingAddress;
use crate::{Error, JobSecret, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Who may come.
#[derive(Debug)]
pub(crate) struct Rules {
    /// How many ranks the job has.
    pub(crate) size: usize,
    /// What each of them has to know.
    pub(crate) key: Option<JobSecret>,
    /// Whether the ranks may meet again after they have met: a launcher outlives what its ranks start.
    pub(crate) repeats: bool,
}

/// A rendezvous that others can reach for as long as this lives.
///
/// Dropping it sends what is still to be sent, for at most about a second, and ends its thread.
#[derive(Debug)]
pub(crate) struct Host {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Listens at `address`.
    pub(crate) fn start(address: &MeetingAddress, rules: Rules) -> Result<Self> {
        let is_local = matches!(address, MeetingAddress::Unix(_));
        let listener = Listener::bind(address)?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system)?);
        let server = Server { rules, is_local, stop: stop.clone() };
        let thread = spawn(move || server.run(listener))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // An eventfd that holds nothing takes a one.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) rules: Rules,
    is_local: bool,
    stop: Arc<OwnedFd>,
}

impl Server {
    /// Whether the operating system vouches for the ranks, so that they can be given a secret.
    pub(super) fn hands_out_secret(&self) -> bool {
        self.is_local && self.rules.key.is_none()
    }

    fn run(self, listener: Listener) {
        if self.rules.repeats {
            self.repeat(&listener);
        } else if let Gathering::Complete(members) = Lobby::new(&self, &listener).gather(&self.stop) {
            // Nobody can come late: a rank that starts again meets the next server, not this one.
            drop(listener);
            match Rounds::welcome(members, &self) {
                Ok(rounds) => rounds.run(&self.stop),
                Err(error) => tracing::error!("{error}"),
            }
        }
    }

    fn repeat(&self, listener: &Listener) {
        let mut running: Vec<JoinHandle<()>> = Vec::new();
        while let Gathering::Complete(members) = Lobby::new(self, listener).gather(&self.stop) {
            let stop = self.stop.clone();
            match Rounds::welcome(members, self).and_then(|rounds| spawn(move || rounds.run(&stop))) {
                Ok(thread) => running.push(thread),
                Err(error) => tracing::error!("{error}"),
            }
            running.retain(|thread| !thread.is_finished());
        }
        for thread in running {
            let _ = thread.join();
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let builder = Builder::new().name("gradwire-meeting".into()).stack_size(256 * 1024);
    builder
        .spawn(work)
        .map_err(|error| Error::System(Arc::from(format!("no thread for the rendezvous: {error}"))))
}

fn system(error: rustix::io::Errno) -> Error {
    Error::System(Arc::from(format!("no descriptor for the rendezvous: {error}")))
}
