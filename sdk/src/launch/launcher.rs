//! What to start, and how.
#![forbid(unsafe_code)]

use super::supervisor::Supervisor;
use super::{Hosts, Interrupter, Report, environment};
use crate::bootstrap::Local;
use crate::bootstrap::rendezvous::{Host, Rules};
use crate::config::{MAX_RANKS, MeetingAddress, setting};
use crate::secret::random;
use crate::{Config, Error, JobSecret, Rank, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Starts the ranks of a job, on this host if nothing else is said, and waits for them.
#[derive(Debug)]
#[must_use = "nothing is started before `run`"]
pub struct Launcher {
    command: Vec<OsString>,
    ranks: usize,
    variables: Vec<(OsString, OsString)>,
    pub(super) on_failure: OnFailure,
    pub(super) grace: Duration,
    pub(super) output: Output,
    interrupter: Option<Interrupter>,
    hosts: Option<Hosts>,
}

/// What happens to the other ranks when one fails: it ends with another code than 0, or by a signal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum OnFailure {
    /// They have the grace period to report and end; then they are ended.
    #[default]
    Stop,
    /// They go on.
    Continue,
}

/// Where the output of the ranks goes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Output {
    /// Line by line through the launcher, each with the rank in front. Lines of more than 64 KiB are cut.
    #[default]
    Prefixed,
    /// Straight to where the launcher's own goes.
    Inherited,
}

impl Launcher {
    /// A job of one rank of this program, which is looked for in `PATH` if it is only a name.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            command: vec![program.into()],
            ranks: 1,
            variables: Vec::new(),
            on_failure: OnFailure::default(),
            grace: Duration::from_secs(5),
            output: Output::default(),
            interrupter: None,
            hosts: None,
        }
    }

    /// A job of the program that calls this, with its own arguments.
    pub fn this_program() -> Result<Self> {
        let program = std::env::current_exe().map_err(|error| {
            Error::System(Arc::from(format!("the path of this program is not known: {error}")))
        })?;
        Ok(Self::new(program).arguments(std::env::args_os().skip(1)))
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.command.push(argument.into());
        self
    }

    /// Adds arguments.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// How many ranks to start, 1 to 65536.
    pub fn ranks(mut self, ranks: usize) -> Self {
        self.ranks = ranks;
        self
    }

    /// Starts the ranks on these hosts, in blocks of consecutive ranks. There must be a rank for each.
    ///
    /// A rank's own variables travel with its command; others are inherited where the remote shell passes them on. The
    /// job's secret does not travel: without a [`secret_file`](Config::secret_file) that is there on all hosts, whoever
    /// reaches the address first is believed. Signals reach the remote shell, and the rank where that passes them on.
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.hosts = Some(hosts);
        self
    }

    /// Sets an environment variable of all ranks, beside those they inherit.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// What happens to the other ranks when one fails. They are ended if nothing is said.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// How long ranks have to end by themselves after another has failed, or after an interrupt: 5 seconds if
    /// nothing is said.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Where the output of the ranks goes: through the launcher, with prefixes, if nothing is said.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// What another thread can end the job with while [`Launcher::run`] waits for it.
    pub fn interrupter(&mut self) -> Result<Interrupter> {
        if let Some(interrupter) = &self.interrupter {
            return Ok(interrupter.clone());
        }
        Ok(self.interrupter.insert(Interrupter::new()?).clone())
    }

    /// Starts the ranks and waits until all have ended.
    ///
    /// The thread that calls this must not end before: the ranks are tied to it. They read nothing from
    /// standard input, except rank 0 where it is not a terminal. What a rank leaves running in its process
    /// group ends with it.
    pub fn run(mut self) -> Result<Report> {
        if !(1..=MAX_RANKS).contains(&self.ranks) {
            return Err(setting("the number of ranks", &self.ranks.to_string(), "from 1 to 65536"));
        }
        let interrupter = self.interrupter()?;
        allow_descriptors(self.ranks);
        let address = self.address()?;
        let rules = Rules { size: self.ranks, key: self.key()?, repeats: true };
        let _host = Host::start(&address, rules)?;
        let mut supervisor = Supervisor::new(&self, interrupter, self.ranks);
        for rank in 0..self.ranks {
            // Dropping the supervisor ends those that have been started.
            supervisor.add(self.start(rank, &address)?)?;
        }
        supervisor.run()
    }

    /// Where the ranks will meet: under a name of this job's own if they are all here.
    fn address(&self) -> Result<MeetingAddress> {
        match &self.hosts {
            Some(hosts) if hosts.count() > self.ranks => Err(setting(
                "the number of ranks",
                &self.ranks.to_string(),
                &format!("at least one for each of the {} hosts", hosts.count()),
            )),
            Some(hosts) => Ok(hosts.address.clone()),
            None => {
                let name = random::<16>()?
                    .iter()
                    .fold(String::from("gradwire-"), |name, byte| format!("{name}{byte:02x}"));
                Ok(MeetingAddress::Unix(name))
            }
        }
    }

    /// The secret that the ranks will read from their environment.
    fn key(&self) -> Result<Option<JobSecret>> {
        let own = self.variables.iter().rev().find(|(name, _)| name == "GRADWIRE_SECRET_FILE");
        let path = match own {
            Some((_, path)) => Some(PathBuf::from(path)),
            None => Config::from_environment()?.secret_file,
        };
        path.as_deref().map(JobSecret::from_file).transpose()
    }

    fn start(&self, rank: Rank, address: &MeetingAddress) -> Result<Child> {
        let local = Local { rank, size: self.ranks };
        let local = self.hosts.as_ref().map_or(local, |hosts| hosts.local(rank, self.ranks));
        let own = environment::of_rank(rank, self.ranks, local, address);
        let variables =
            self.variables.iter().cloned().chain(own.map(|(name, value)| (name.into(), value.into())));
        let words = match &self.hosts {
            Some(hosts) => hosts.command(rank, self.ranks, variables.clone(), &self.command),
            None => self.command.clone(),
        };
        let program = words.first().map(OsString::as_os_str).unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(words.get(1..).unwrap_or_default())
            .envs(variables)
            .stdin(if rank == 0 && !std::io::stdin().is_terminal() {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            // A group of its own: Ctrl-C reaches the launcher alone, and the launcher reaches all it started.
            .process_group(0);
        if self.output == Output::Prefixed {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        command.spawn().map_err(|error| cannot_start(program, &error))
    }
}

fn cannot_start(program: &OsStr, error: &std::io::Error) -> Error {
    let program = program.to_string_lossy();
    Error::System(Arc::from(format!("the program {program} cannot be started: {error}")))
}

/// Each rank takes six descriptors here: two pipes, a process, two connections and one to spare.
fn allow_descriptors(ranks: usize) {
    let need = 64 + 6 * ranks as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < need) {
        let current = Some(limit.maximum.map_or(need, |maximum| need.min(maximum)));
        // What is then still missing is an error where it is missed, which says more.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}
