//! Which launcher to believe, and where to meet the other ranks.
#![forbid(unsafe_code)]

use super::Local;
use super::sources::{OPEN_MPI, PMI, PMI_PORT, SLURM, Sighting, TORCHRUN};
use super::{pmi, pmix};
use crate::config::{Environment, MeetingAddress, number, setting};
use crate::{Config, Error, Rank, Result, launch};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The place of this process.
#[derive(PartialEq, Debug)]
pub(super) enum Place {
    /// The only rank of its job.
    Alone,
    /// One of several, who meet at an address.
    Meeting(Seat),
    /// One of several, whose launcher speaks PMI-1.
    Pmi(pmi::Contact),
    /// One of several on several hosts, whose launcher offers PMIx.
    Pmix(pmix::Contact),
}

/// One of several ranks.
#[derive(PartialEq, Debug)]
pub(super) struct Seat {
    pub(super) rank: Rank,
    pub(super) size: usize,
    pub(super) local: Option<Local>,
    pub(super) address: MeetingAddress,
    /// Whether a launcher listens there, and not rank 0.
    pub(super) is_hosted: bool,
}

/// Who tells the place of a process that nobody started as a rank.
pub(super) const NOBODY: &str = "nothing: a process on its own";

/// Finds the place of this process, and says who told.
pub(super) fn find(config: &Config) -> Result<(Place, &'static str)> {
    if config.rank.is_some() || config.size.is_some() {
        let is_hosted = launch::is_hosted(&config.environment);
        let source = if is_hosted { "gradwire's launcher" } else { "the settings" };
        return Ok((own(config, is_hosted)?, source));
    }
    let sightings = sightings(config)?;
    match choose(&sightings)? {
        Some(sighting) => Ok((wire(sighting, config)?, sighting.source.name)),
        None => match &config.address {
            Some(address) => Err(incomplete(&[format!(
                "GRADWIRE_ADDRESS={address}; missing: GRADWIRE_RANK, GRADWIRE_SIZE"
            )])),
            None => Ok((Place::Alone, NOBODY)),
        },
    }
}

/// What each launcher has left, if anything.
pub(super) fn sightings(config: &Config) -> Result<Vec<Sighting>> {
    let looks = [&PMI, &PMI_PORT, &OPEN_MPI, &TORCHRUN, &SLURM].into_iter().map(|source| {
        let is_wired = config.address.is_some() && source.name != PMI.name;
        source.look(&config.environment, is_wired)
    });
    looks.filter_map(Result::transpose).collect()
}

/// What the project's own settings say.
fn own(config: &Config, is_hosted: bool) -> Result<Place> {
    if config.size == Some(1) {
        return Ok(Place::Alone);
    }
    if let (Some(rank), Some(size), Some(address)) = (config.rank, config.size, &config.address) {
        let local = config.local_rank.zip(config.local_size).map(|(rank, size)| Local { rank, size });
        return Ok(Place::Meeting(Seat { rank, size, local, address: address.clone(), is_hosted }));
    }
    let settings = [
        ("GRADWIRE_RANK", config.rank.map(|rank| rank.to_string())),
        ("GRADWIRE_SIZE", config.size.map(|size| size.to_string())),
        ("GRADWIRE_ADDRESS", config.address.as_ref().map(ToString::to_string)),
    ];
    let found = settings.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    let missing = settings.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name);
    let [found, missing] =
        [found.collect::<Vec<_>>(), missing.map(Into::into).collect()].map(|list| list.join(", "));
    Err(incomplete(&[format!("{found}; missing: {missing}")]))
}

/// Which launcher to believe.
///
/// Slurm is often the outer one of two: what `srun` says gives way to what another says, also where `srun`
/// says it as PMI. All others must agree.
fn choose(sightings: &[Sighting]) -> Result<Option<&Sighting>> {
    let slurm = sightings.iter().find(|sighting| sighting.source.name == SLURM.name);
    let is_outer = |sighting: &Sighting| {
        slurm.is_some_and(|slurm| {
            let is_pmi_of_slurm = sighting.source.name == PMI.name && sighting.agrees(slurm);
            std::ptr::eq(sighting, slurm) || is_pmi_of_slurm
        })
    };
    let inner: Vec<&Sighting> = sightings.iter().filter(|sighting| !is_outer(sighting)).collect();
    let outer = sightings.iter().filter(|sighting| is_outer(sighting));
    let mut complete = inner.iter().copied().chain(outer).filter(|sighting| sighting.is_complete());
    let Some(chosen) = complete.next() else {
        return if sightings.is_empty() {
            Ok(None)
        } else {
            Err(incomplete(&sightings.iter().map(ToString::to_string).collect::<Vec<_>>()))
        };
    };
    match inner.into_iter().find(|other| other.contradicts(chosen)) {
        Some(other) => Err(contradiction(chosen, other)),
        None => Ok(Some(chosen)),
    }
}

/// Where to meet the others, according to one launcher.
fn wire(sighting: &Sighting, config: &Config) -> Result<Place> {
    let local = sighting.local_rank.zip(sighting.local_size).map(|(rank, size)| Local { rank, size });
    if sighting.size == Some(1) {
        return Ok(Place::Alone);
    }
    if sighting.source.name == PMI.name {
        return Ok(Place::Pmi(pmi::Contact::new(sighting, local)?));
    }
    let (Some(rank), Some(size)) = (sighting.rank, sighting.size) else {
        return Err(incomplete(&[sighting.to_string()]));
    };
    let address = match &config.address {
        Some(address) => address.clone(),
        None if is_one_host(sighting) => MeetingAddress::Unix(job_name(sighting, &config.environment)),
        None if sighting.source.name == TORCHRUN.name => beside_master(sighting)?,
        None => {
            let contact = pmix::Contact::new(sighting, local, config);
            return contact.map(Place::Pmix).ok_or_else(|| several_hosts(sighting));
        }
    };
    Ok(Place::Meeting(Seat { rank, size, local, address, is_hosted: false }))
}

fn is_one_host(sighting: &Sighting) -> bool {
    sighting.value("SLURM_STEP_NUM_NODES") == Some("1")
        || (sighting.local_size.is_some() && sighting.local_size == sighting.size)
}

/// A name for this job that no other has.
fn job_name(sighting: &Sighting, environment: &Environment) -> String {
    let mut hash = Sha256::new();
    let user = rustix::process::geteuid().as_raw();
    hash.update(format!("gradwire rendezvous\0{}\0{user}\0", sighting.source.name));
    for pattern in sighting.source.wiring.iter().chain(sighting.source.job) {
        let matches = |name: &&str| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        };
        for name in environment.names().filter(matches) {
            let value = environment.get(name).unwrap_or_default();
            hash.update(format!("{name}\0{}\0", value.to_string_lossy()));
        }
    }
    let digest = hash.finalize();
    digest.iter().take(16).fold("gradwire-".into(), |name, byte| format!("{name}{byte:02x}"))
}

/// torchrun's agent listens at its own port, so the ranks meet at the next one.
fn beside_master(sighting: &Sighting) -> Result<MeetingAddress> {
    let host = sighting.value("MASTER_ADDR").unwrap_or_default();
    let text = sighting.value("MASTER_PORT").unwrap_or_default();
    let port = number(text).and_then(|port| u16::try_from(port).ok()?.checked_add(1));
    let port = port.ok_or_else(|| setting("MASTER_PORT", text, "a port from 0 to 65534"))?;
    if host.is_empty() {
        return Err(setting("MASTER_ADDR", host, "the name or address of a host"));
    }
    Ok(MeetingAddress::Tcp { host: host.to_owned(), port })
}

fn incomplete(found: &[String]) -> Error {
    let found = found.join("; ");
    Error::Bootstrap(Arc::from(format!(
        "the environment tells only a part of this process's place: {found}. Set what is missing, unset what is \
         left over, or set GRADWIRE_RANK, GRADWIRE_SIZE and GRADWIRE_ADDRESS (GRADWIRE_SIZE=1 alone for one process)"
    )))
}

fn contradiction(a: &Sighting, b: &Sighting) -> Error {
    Error::Bootstrap(Arc::from(format!(
        "two launchers tell different places of this process: {a} and {b}. Unset the variables that are left \
         over, or set GRADWIRE_RANK, GRADWIRE_SIZE and GRADWIRE_ADDRESS, which outrank both"
    )))
}

fn several_hosts(sighting: &Sighting) -> Error {
    Error::Bootstrap(Arc::from(format!(
        "the ranks do not run on one host, or it is not known whether they do: {sighting}. Set \
         GRADWIRE_ADDRESS=HOST:PORT for all ranks, with a free port on the host of rank 0"
    )))
}

#[cfg(test)]
mod tests;
