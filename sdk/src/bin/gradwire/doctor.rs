//! `gradwire doctor`: the place of this process, the way to the others, and what the machine offers.

use clap::Args;
use gradwire::bootstrap::{Placement, discover};
use gradwire::doctor::{Finding, examine};
use gradwire::{Communicator, Config, Result, init_over};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

#[derive(Args)]
pub(crate) struct Doctor {
    /// What this machine offers, also where the process is one of several ranks.
    #[arg(long)]
    machine: bool,
    /// One JSON object a rank, on a line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Doctor) -> Result<i32> {
    let config = Config::from_environment()?;
    let job = Job::meet(&config)?;
    let machine = arguments.machine || job.communicator.size() == 1;
    let findings = if machine { examine(&config) } else { Vec::new() };
    if arguments.json {
        println!("{}", job.as_json(&findings));
        return Ok(0);
    }
    println!("{}", job.in_words());
    findings.iter().for_each(|finding| println!("{finding}"));
    Ok(0)
}

/// What the ranks are to each other.
struct Job {
    communicator: Communicator,
    source: &'static str,
    local: Option<gradwire::bootstrap::Local>,
    is_authenticated: bool,
    took: Duration,
}

impl Job {
    fn meet(config: &Config) -> Result<Self> {
        let start = Instant::now();
        let Placement { mut bootstrap, secret, source, .. } = discover(config)?;
        let communicator = init_over(&mut *bootstrap, config)?;
        let local = bootstrap.local();
        Ok(Self { communicator, source, local, is_authenticated: secret.is_some(), took: start.elapsed() })
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.communicator.size()).filter(|rank| *rank != self.communicator.rank())
    }

    fn path(&self, rank: usize) -> &'static str {
        self.communicator.path(rank).unwrap_or("nothing")
    }

    fn host(&self, rank: usize) -> &str {
        self.communicator.host(rank).unwrap_or_default()
    }

    fn in_words(&self) -> String {
        let (rank, size) = (self.communicator.rank(), self.communicator.size());
        let local = self.local.map(|local| format!(", local {} of {}", local.rank, local.size));
        let hosts: BTreeSet<&str> = (0..size).map(|rank| self.host(rank)).collect();
        let mut paths = BTreeMap::<&str, usize>::new();
        self.others().for_each(|other| *paths.entry(self.path(other)).or_default() += 1);
        let paths: Vec<String> = paths.iter().map(|(path, ranks)| format!(", {ranks} by {path}")).collect();
        let authenticated = if self.is_authenticated { "authenticated" } else { "not authenticated" };
        format!(
            "rank {rank} of {size}{}, according to {}; met all on {} host(s) in {:?}{}; {authenticated}",
            local.unwrap_or_default(),
            self.source,
            hosts.len(),
            self.took,
            paths.concat(),
        )
    }

    fn as_json(&self, findings: &[Finding]) -> Value {
        let path = |rank| json!({ "rank": rank, "host": self.host(rank), "path": self.path(rank) });
        let finding = |finding: &Finding| {
            let advice = finding.advice.as_ref();
            json!({
                "topic": finding.topic,
                "found": finding.found,
                "problem": advice.map(|advice| &advice.problem),
                "remedy": advice.map(|advice| &advice.remedy),
            })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "rank": self.communicator.rank(),
            "size": self.communicator.size(),
            "host": self.host(self.communicator.rank()),
            "source": self.source,
            "authenticated": self.is_authenticated,
            "paths": self.others().map(path).collect::<Vec<_>>(),
            "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}
