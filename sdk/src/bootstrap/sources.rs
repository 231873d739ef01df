//! What launchers leave in the environment: one table, and how it is read.
#![forbid(unsafe_code)]

use crate::config::{Environment, number, setting};
use crate::{Rank, Result};
use std::fmt;

/// The variables of one launcher. Where several names are given, the first that is set counts.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: &'static str,
    /// Give the launcher away, like its rank and size.
    marks: &'static [&'static str],
    rank: &'static [&'static str],
    size: &'static [&'static str],
    local_rank: &'static [&'static str],
    local_size: &'static [&'static str],
    /// What ranks need to find each other; the same for all ranks of the job.
    pub(super) wiring: &'static [&'static str],
    /// What tells two jobs apart, beside the wiring; whole names, or beginnings that end in `*`.
    pub(super) job: &'static [&'static str],
}

pub(super) static PMI: Source = Source {
    name: "PMI",
    marks: &["PMI_FD"],
    rank: &["PMI_RANK"],
    size: &["PMI_SIZE"],
    local_rank: &["MPI_LOCALRANKID"],
    local_size: &["MPI_LOCALNRANKS"],
    wiring: &["PMI_FD"],
    job: &[],
};

/// What hydra leaves with `-pmi-port`: its server knows the rank and the size.
pub(super) static PMI_PORT: Source = Source {
    name: "PMI",
    marks: &["PMI_PORT"],
    rank: &[],
    size: &[],
    local_rank: &["MPI_LOCALRANKID"],
    local_size: &["MPI_LOCALNRANKS"],
    wiring: &["PMI_PORT", "PMI_ID"],
    job: &[],
};

pub(super) static OPEN_MPI: Source = Source {
    name: "Open MPI",
    marks: &[],
    rank: &["OMPI_COMM_WORLD_RANK"],
    size: &["OMPI_COMM_WORLD_SIZE"],
    local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
    local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
    wiring: &["PMIX_NAMESPACE"],
    job: &["PMIX_SERVER_URI*"],
};

pub(super) static TORCHRUN: Source = Source {
    name: "torchrun",
    marks: &[],
    rank: &["RANK"],
    size: &["WORLD_SIZE"],
    local_rank: &["LOCAL_RANK"],
    local_size: &["LOCAL_WORLD_SIZE"],
    wiring: &["MASTER_ADDR", "MASTER_PORT"],
    job: &["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"],
};

pub(super) static SLURM: Source = Source {
    name: "Slurm",
    marks: &[],
    rank: &["SLURM_PROCID"],
    size: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    local_rank: &["SLURM_LOCALID"],
    local_size: &[],
    wiring: &["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_NODES"],
    job: &["SLURM_CLUSTER_NAME"],
};

/// What one launcher has left.
#[derive(Debug)]
pub(super) struct Sighting {
    pub(super) source: &'static Source,
    pub(super) rank: Option<Rank>,
    pub(super) size: Option<usize>,
    pub(super) local_rank: Option<usize>,
    pub(super) local_size: Option<usize>,
    found: Vec<(&'static str, String)>,
    pub(super) missing: Vec<&'static str>,
}

impl Source {
    /// Looks for this launcher. Where the ranks meet elsewhere (`is_wired`), its wiring may be missing.
    pub(super) fn look(&'static self, environment: &Environment, is_wired: bool) -> Result<Option<Sighting>> {
        let mut sighting = Sighting::new(self);
        sighting.rank = sighting.number(environment, self.rank)?;
        sighting.size = sighting.number(environment, self.size)?;
        if sighting.found.is_empty() && !self.marks.iter().any(|name| environment.get(name).is_some()) {
            return Ok(None);
        }
        for name in self.wiring {
            if sighting.text(environment, &[name]).is_none() && !is_wired {
                sighting.missing.push(name);
            }
        }
        sighting.missing.extend(self.rank.first().filter(|_| sighting.rank.is_none()));
        sighting.missing.extend(self.size.first().filter(|_| sighting.size.is_none()));
        sighting.local_rank = sighting.number(environment, self.local_rank)?;
        sighting.local_size = sighting.number(environment, self.local_size)?;
        sighting.check()?;
        Ok(Some(sighting))
    }
}

impl Sighting {
    fn new(source: &'static Source) -> Self {
        let (found, missing) = (Vec::new(), Vec::new());
        Self { source, rank: None, size: None, local_rank: None, local_size: None, found, missing }
    }

    fn text(&mut self, environment: &Environment, names: &[&'static str]) -> Option<String> {
        let (name, value) = names.iter().find_map(|name| Some((name, environment.get(name)?)))?;
        let value = value.to_string_lossy().into_owned();
        self.found.push((name, value.clone()));
        Some(value)
    }

    fn number(&mut self, environment: &Environment, names: &[&'static str]) -> Result<Option<usize>> {
        let Some(text) = self.text(environment, names) else { return Ok(None) };
        let name = self.found.last().map_or("", |(name, _)| name);
        let number = number(&text).filter(|&number| number <= crate::config::MAX_RANKS);
        number.map(Some).ok_or_else(|| setting(name, &text, "a whole number from 0 to 65536"))
    }

    /// The value of a variable that was found.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.found.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    fn check(&self) -> Result<()> {
        let pairs = [
            (self.rank, self.source.rank, self.size),
            (self.local_rank, self.source.local_rank, self.local_size),
        ];
        for (rank, names, size) in pairs {
            if let (Some(rank), Some(size), Some(name)) = (rank, size, names.first())
                && rank >= size
            {
                return Err(setting(
                    name,
                    &rank.to_string(),
                    &format!("less than the size, which is {size}"),
                ));
            }
        }
        if self.size == Some(0) {
            return Err(setting(self.source.size.first().unwrap_or(&""), "0", "at least 1"));
        }
        Ok(())
    }

    /// Whether it says all that is needed: a job of one needs no wiring.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.is_empty() || self.size == Some(1)
    }

    /// Whether it is sure to speak of the same processes as the other.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        self.rank.is_some() && self.rank == other.rank && self.size == other.size
    }

    /// Whether it says something else than the other about this process.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        let differ = |a: Option<usize>, b: Option<usize>| a.is_some() && b.is_some() && a != b;
        differ(self.rank, other.rank) || differ(self.size, other.size)
    }
}

impl fmt::Display for Sighting {
    /// `Open MPI (OMPI_COMM_WORLD_SIZE=4; missing: OMPI_COMM_WORLD_RANK, PMIX_NAMESPACE)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", self.source.name)?;
        for (index, (name, value)) in self.found.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { "" } else { ", " })?;
        }
        if !self.missing.is_empty() {
            write!(f, "; missing: {}", self.missing.join(", "))?;
        }
        f.write_str(")")
    }
}
