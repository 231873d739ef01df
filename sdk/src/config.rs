//! The settings of a process: what the program says, else what the environment says, else the default.
#![forbid(unsafe_code)]

mod environment;
mod parse;

pub use environment::Environment;
pub use parse::duration;
pub(crate) use parse::{address, number};

use crate::{Error, Rank, Result};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// The most ranks a job may have.
pub const MAX_RANKS: usize = 1 << 16;

/// The settings of a process.
///
/// [`Config::from_environment`] reads the environment once; a program that wants something else assigns the
/// field afterwards. So what the program says outranks the environment, which outranks the default.
///
#[doc = include_str!("config/variables.md")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// What is logged to standard error. `None` leaves logging to the program.
    pub log: Option<LevelFilter>,
    /// The deadline of every blocking call, from its start.
    pub timeout: Duration,
    /// How long start-up may take until all ranks have found each other.
    pub start_timeout: Duration,
    /// Which transport carries the data.
    pub transport: TransportChoice,
    /// The provider of libfabric by its exact name; `None`: that of an RDMA card.
    pub fabric_provider: Option<String>,
    /// The interfaces to use between hosts; empty means all.
    pub interfaces: Vec<Interface>,
    /// The ports that listeners may take; `None` means any.
    pub port_range: Option<RangeInclusive<u16>>,
    /// Which algorithm to use for which size, as text for the selection.
    pub tune: Option<String>,
    /// A file whose content only the processes of the job can read: its proof towards each other.
    pub secret_file: Option<PathBuf>,
    /// The number of this process within the job.
    pub rank: Option<Rank>,
    /// How many processes the job has.
    pub size: Option<usize>,
    /// The number of this process among those of its host.
    pub local_rank: Option<usize>,
    /// How many processes of the job run on this host.
    pub local_size: Option<usize>,
    /// Where the ranks meet at start-up; rank 0 listens there, unless a launcher does.
    pub address: Option<MeetingAddress>,
    /// The launcher's `libpmix.so.2`, through which ranks on several hosts meet.
    pub pmix: Option<PathBuf>,
    pub(crate) environment: Environment,
}

impl Config {
    /// The settings from the environment of this process.
    pub fn from_environment() -> Result<Self> {
        Self::read(Environment::of_process())
    }

    /// The settings from other variables than those of this process.
    pub fn read(environment: Environment) -> Result<Self> {
        let defaults = Self::default();
        let read = Reader(&environment);
        let config = Self {
            log: read.parsed("GRADWIRE_LOG", parse::log)?,
            timeout: read.parsed("GRADWIRE_TIMEOUT", duration)?.unwrap_or(defaults.timeout),
            start_timeout: read.parsed("GRADWIRE_START_TIMEOUT", duration)?.unwrap_or(defaults.start_timeout),
            transport: read.parsed("GRADWIRE_TRANSPORT", parse::transport)?.unwrap_or_default(),
            fabric_provider: read.parsed("GRADWIRE_FABRIC_PROVIDER", parse::provider)?,
            interfaces: read.parsed("GRADWIRE_INTERFACE", parse::interfaces)?.unwrap_or_default(),
            port_range: read.parsed("GRADWIRE_PORT_RANGE", parse::port_range)?.flatten(),
            tune: read.parsed("GRADWIRE_TUNE", parse::text)?,
            secret_file: environment.get("GRADWIRE_SECRET_FILE").map(PathBuf::from),
            rank: read.parsed("GRADWIRE_RANK", parse::rank)?,
            size: read.parsed("GRADWIRE_SIZE", parse::size)?,
            local_rank: read.parsed("GRADWIRE_LOCAL_RANK", parse::rank)?,
            local_size: read.parsed("GRADWIRE_LOCAL_SIZE", parse::size)?,
            address: read.parsed("GRADWIRE_ADDRESS", address)?,
            pmix: environment.get("GRADWIRE_PMIX").map(PathBuf::from),
            environment,
        };
        config.validate()?;
        Ok(config)
    }

    /// Warns of variables that look like settings and are none: misspelt ones, or those of another version.
    pub(crate) fn warn_of_strangers(&self) {
        let names = self.environment.names().filter(|name| name.starts_with("GRADWIRE_"));
        for name in names.filter(|name| !VARIABLES.contains(name)) {
            tracing::warn!("{name} is set, but there is no such setting");
        }
    }

    /// Checks what concerns several fields, also after a program has assigned some.
    pub(crate) fn validate(&self) -> Result<()> {
        below("GRADWIRE_RANK", self.rank, "GRADWIRE_SIZE", self.size)?;
        below("GRADWIRE_LOCAL_RANK", self.local_rank, "GRADWIRE_LOCAL_SIZE", self.local_size)?;
        for (name, size) in [("GRADWIRE_SIZE", self.size), ("GRADWIRE_LOCAL_SIZE", self.local_size)] {
            if size.is_some_and(|size| !(1..=MAX_RANKS).contains(&size)) {
                return Err(setting(name, &size.unwrap_or_default().to_string(), parse::SIZE));
            }
        }
        if let (Some(local), Some(size)) = (self.local_size, self.size)
            && local > size
        {
            let allowed = format!("at most GRADWIRE_SIZE, which is {size}");
            return Err(setting("GRADWIRE_LOCAL_SIZE", &local.to_string(), &allowed));
        }
        for (name, duration) in
            [("GRADWIRE_TIMEOUT", self.timeout), ("GRADWIRE_START_TIMEOUT", self.start_timeout)]
        {
            if duration.is_zero() || duration > parse::LONGEST {
                return Err(setting(name, &format!("{duration:?}"), parse::DURATION));
            }
        }
        Ok(())
    }
}

impl Default for Config {
    /// The defaults, without a look at the environment: a process on its own.
    fn default() -> Self {
        Self {
            log: None,
            timeout: Duration::from_secs(300),
            start_timeout: Duration::from_secs(60),
            transport: TransportChoice::Auto,
            fabric_provider: None,
            interfaces: Vec::new(),
            port_range: None,
            tune: None,
            secret_file: None,
            rank: None,
            size: None,
            local_rank: None,
            local_size: None,
            address: None,
            pmix: None,
            environment: Environment::default(),
        }
    }
}

/// Which transport carries the data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum TransportChoice {
    /// Shared memory where it works between two ranks, libfabric where both have an RDMA card, TCP elsewhere.
    #[default]
    Auto,
    /// Shared memory only: the ranks must run on one host.
    Shm,
    /// libfabric only, also within a host, over whatever provider it has.
    Libfabric,
    /// TCP only, also within a host.
    Tcp,
    /// Only what the program brings to [`init_over_transport`](crate::init_over_transport). No variable says that.
    Own,
}

/// An interface by name, or all those with an address of a network.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Interface {
    /// `eth0`.
    Name(String),
    /// `10.0.0.0/8`.
    Network {
        /// An address of the network.
        address: IpAddr,
        /// How many leading bits are those of the network.
        prefix: u8,
    },
}

/// Where the ranks meet at start-up.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MeetingAddress {
    /// A name or an address, and a port.
    Tcp {
        /// Resolved by each rank when it connects.
        host: String,
        /// 1..65535.
        port: u16,
    },
    /// The name of an abstract Unix socket, for ranks of one host.
    Unix(String),
}

impl std::fmt::Display for MeetingAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(name) => write!(f, "unix:{name}"),
        }
    }
}

/// All variables this library gives a meaning to; the last is the launcher's own.
const VARIABLES: [&str; 16] = [
    "GRADWIRE_LOG",
    "GRADWIRE_TIMEOUT",
    "GRADWIRE_START_TIMEOUT",
    "GRADWIRE_TRANSPORT",
    "GRADWIRE_FABRIC_PROVIDER",
    "GRADWIRE_INTERFACE",
    "GRADWIRE_PORT_RANGE",
    "GRADWIRE_TUNE",
    "GRADWIRE_SECRET_FILE",
    "GRADWIRE_RANK",
    "GRADWIRE_SIZE",
    "GRADWIRE_LOCAL_RANK",
    "GRADWIRE_LOCAL_SIZE",
    "GRADWIRE_ADDRESS",
    "GRADWIRE_PMIX",
    crate::launch::LAUNCHER_VARIABLE,
];

/// Reads variables one by one, and says which was wrong.
struct Reader<'a>(&'a Environment);

impl Reader<'_> {
    fn parsed<T>(&self, name: &str, parse: fn(&str) -> Result<T, String>) -> Result<Option<T>> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let Some(text) = value.to_str() else {
            return Err(setting(name, &value.to_string_lossy(), "valid UTF-8"));
        };
        parse(text).map(Some).map_err(|allowed| setting(name, text, &allowed))
    }
}

fn below(name: &str, rank: Option<usize>, size_name: &str, size: Option<usize>) -> Result<()> {
    match (rank, size) {
        (Some(rank), Some(size)) if rank >= size => {
            Err(setting(name, &rank.to_string(), &format!("less than {size_name}, which is {size}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn setting(name: &str, value: &str, allowed: &str) -> Error {
    Error::Setting { name: Arc::from(name), value: Arc::from(value), allowed: Arc::from(allowed) }
}

#[cfg(test)]
mod tests;
