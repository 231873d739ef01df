//! Debian packages that some tests need. Nothing else needs them: the library and its programs do not.

use crate::command::{Outcome, command, run};
use crate::session::Session;
use std::path::Path;
use std::process::{Command, Stdio};

struct Package {
    name: &'static str,
    /// A command that succeeds where it is installed.
    probe: &'static [&'static str],
    /// What is not tested without it.
    tests: &'static str,
}

const PACKAGES: [Package; 5] = [
    Package {
        name: "openmpi-bin",
        probe: &["mpirun.openmpi", "--version"],
        tests: "start-up under Open MPI's mpirun",
    },
    Package {
        name: "mpich",
        probe: &["mpiexec.hydra", "--version"],
        tests: "start-up under MPICH's mpiexec (hydra)",
    },
    Package { name: "slurm-wlm", probe: &["slurmctld", "-V"], tests: "start-up under Slurm's srun" },
    Package {
        name: "libfabric1",
        probe: &["sh", "-c", "ldconfig -p | grep --quiet libfabric.so.1"],
        tests: "the libfabric transport",
    },
    Package {
        name: "python3-venv",
        probe: &["python3", "-c", "import ensurepip"],
        tests: "that the committed FlatBuffers code is what flatc makes of the schema",
    },
];

/// What the comparison with Open MPI needs.
const OPEN_MPI: [Package; 4] = [
    Package { name: "openmpi-bin", probe: &["mpirun.openmpi", "--version"], tests: OF_OPEN_MPI },
    Package { name: "libopenmpi-dev", probe: &["mpicc.openmpi", "--version"], tests: OF_OPEN_MPI },
    Package { name: "libclang-dev", probe: LIBCLANG, tests: OF_OPEN_MPI },
    Package { name: "clang", probe: &["clang", "--version"], tests: OF_OPEN_MPI },
];
const OF_OPEN_MPI: &str = "that calls give what Open MPI gives";

/// What the comparison with MPICH needs.
const MPICH: [Package; 4] = [
    Package { name: "mpich", probe: &["mpiexec.hydra", "--version"], tests: OF_MPICH },
    Package { name: "libmpich-dev", probe: &["mpicc.mpich", "-compile-info"], tests: OF_MPICH },
    Package { name: "libclang-dev", probe: LIBCLANG, tests: OF_MPICH },
    Package { name: "clang", probe: &["clang", "--version"], tests: OF_MPICH },
];
const OF_MPICH: &str = "that calls give what MPICH gives";

const LIBCLANG: &[&str] =
    &["sh", "-c", "ls /usr/lib/llvm-*/lib/libclang.so* /usr/lib/*/libclang-[0-9]*.so* | grep --quiet ."];

/// Installs what is missing where that is possible, else says what is not tested.
pub(crate) fn provide(session: &mut Session) -> Outcome {
    install(session, &PACKAGES)
}

/// The same for the comparison with one MPI library: `openmpi` or `mpich`.
pub(crate) fn provide_for_mpi(session: &mut Session, library: &str) -> Outcome {
    install(session, if library == "mpich" { &MPICH } else { &OPEN_MPI })
}

fn install(session: &mut Session, packages: &[Package]) -> Outcome {
    let missing: Vec<&str> =
        packages.iter().filter(|package| !package.is_there()).map(|package| package.name).collect();
    if missing.is_empty() {
        let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
        println!("all there: {}", names.join(", "));
        return Ok(());
    }
    if can_install() {
        // The lists of a fresh machine are old or absent. What then is still missing is said below.
        let _ = run(&mut apt_get(&["update", "--quiet"]));
        let _ = run(apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"]).args(&missing));
    }
    for package in packages.iter().filter(|package| !package.is_there()) {
        println!("missing: {}, to be installed by root: apt-get install {0}", package.name);
        session.not_tested.push(format!("{} (Debian package {} is missing)", package.tests, package.name));
    }
    Ok(())
}

impl Package {
    fn is_there(&self) -> bool {
        let Some((program, arguments)) = self.probe.split_first() else { return false };
        let status = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    }
}

fn can_install() -> bool {
    let id = Command::new("id").arg("--user").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0") && Path::new("/usr/bin/apt-get").exists()
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = command("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    command
}
