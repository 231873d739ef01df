//! `cargo xtask conformance`: random calls through Gradwire and through an MPI library, compared.

use crate::command::{Failure, Outcome, command, ended, root, run, text};
use crate::packages;
use crate::session::Session;
use clap::{Args, ValueEnum};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// The MPI library to compare with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Mpi {
    /// Open MPI; Gradwire finds the other ranks by itself.
    #[value(name = "openmpi")]
    OpenMpi,
    /// MPICH; Gradwire finds the other ranks through it, since hydra speaks to one of both only.
    Mpich,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Conformance {
    /// The MPI library to compare with.
    #[arg(long)]
    mpi: Mpi,
    /// How many processes.
    #[arg(long, default_value_t = 4)]
    ranks: usize,
    /// How many calls.
    #[arg(long, default_value_t = 2000)]
    calls: usize,
    /// Which calls: the same seed makes the same ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// From this call on, changes the first value that rank 0 gets from Gradwire: one mismatch must be found.
    #[arg(long, value_name = "CALL")]
    corrupt: Option<usize>,
    /// Gradwire sends everything through the MPI library.
    #[arg(long)]
    through: bool,
}

impl Mpi {
    fn name(self) -> &'static str {
        if self == Self::OpenMpi { "openmpi" } else { "mpich" }
    }

    /// A command that builds or runs for this library; one program serves one library.
    fn cargo(self, arguments: &[&str]) -> Command {
        let mut command = crate::command::cargo([]);
        command
            .args(arguments)
            .args(["--manifest-path", "mpi/Cargo.toml"])
            .env("CARGO_TARGET_DIR", format!("target/mpi/{}", self.name()))
            .env("MPICC", format!("mpicc.{}", self.name()));
        command
    }

    fn launcher(self) -> Command {
        match self {
            Self::OpenMpi => {
                let mut command = command("mpirun.openmpi");
                command.arg("--oversubscribe");
                // Of its ways to serve windows, `rdma` crashes in 4.1.4 and `pt2pt` hangs.
                command.env("OMPI_MCA_osc", "sm");
                // Tests in containers run as root.
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                command
            }
            Self::Mpich => command("mpiexec.hydra"),
        }
    }
}

impl Conformance {
    pub(crate) fn run(&self) -> Outcome {
        let mut session = Session::default();
        packages::provide_for_mpi(&mut session, self.mpi.name())?;
        if let Some(missing) = session.not_tested.first() {
            return Err(Failure::Impossible(missing.clone()));
        }
        run(&mut self.mpi.cargo(&["build", "--quiet"]))?;
        self.compare()
    }

    /// Runs the program and ends with its last line, whatever the launcher says afterwards.
    fn compare(&self) -> Outcome {
        let start = match self.mpi {
            _ if self.through => "through",
            Mpi::OpenMpi => "own",
            Mpi::Mpich => "mpi",
        };
        let mut command = self.mpi.launcher();
        command
            .args(["-n", &self.ranks.to_string()])
            .arg(root().join(format!("target/mpi/{}/debug/conformance", self.mpi.name())))
            .args(["--calls", &self.calls.to_string(), "--seed", &self.seed.to_string(), "--start", start])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(call) = self.corrupt {
            command.args(["--corrupt", &call.to_string()]);
        }
        let said = text(&command);
        println!("$ {said}");
        let failed = |error| Failure::NotStarted(said.clone(), error);
        let mut child = command.spawn().map_err(failed)?;
        let mut verdict = None;
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.map_err(failed)?;
            if line.starts_with("calls ") { verdict = Some(line) } else { println!("{line}") }
        }
        let status = child.wait().map_err(failed)?;
        let Some(verdict) = verdict else { return ended(&command, status) };
        println!("{verdict}");
        if status.success() { Ok(()) } else { Err(Failure::Differing(verdict)) }
    }
}

/// With each MPI library that is there: the tests of the transport over it, the examples, a short comparison of calls over
/// Gradwire's own transports and over MPI, and one that must find a changed value.
pub(crate) fn short(session: &mut Session) -> Outcome {
    [Mpi::OpenMpi, Mpi::Mpich].into_iter().try_for_each(|mpi| short_with(mpi, session))
}

fn short_with(mpi: Mpi, session: &mut Session) -> Outcome {
    let missing = session.not_tested.len();
    packages::provide_for_mpi(session, mpi.name())?;
    if session.not_tested.len() > missing {
        return Ok(());
    }
    let mut tests = mpi.cargo(&["test", "--quiet"]);
    // Each test is a job of one process, in a container by root.
    tests.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run(&mut tests)?;
    run(&mut mpi.cargo(&["build", "--quiet", "--examples", "--bins"]))?;
    for ranks in ["2", "3", "5"] {
        for example in ["beside", "through"] {
            let program = root().join(format!("target/mpi/{}/debug/examples/{example}", mpi.name()));
            run(mpi.launcher().args(["-n", ranks]).arg(program))?;
        }
    }
    let sound = Conformance { mpi, ranks: 3, calls: 300, seed: 1, corrupt: None, through: false };
    sound.compare()?;
    Conformance { through: true, ..sound }.compare()?;
    match (Conformance { corrupt: Some(100), ..sound }).compare() {
        Ok(()) => Err(Failure::Undetected("a comparison with a changed value".to_owned())),
        Err(Failure::Differing(verdict)) if verdict == "calls 300, mismatches 1" => Ok(()),
        Err(failure) => Err(failure),
    }
}
