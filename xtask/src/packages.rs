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

const PACKAGES: [Package; 3] = [
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
    Package {
        name: "python3-venv",
        probe: &["python3", "-c", "import ensurepip"],
        tests: "that the committed FlatBuffers code is what flatc makes of the schema",
    },
];

/// Installs what is missing where that is possible, else says what is not tested.
pub(crate) fn provide(session: &mut Session) -> Outcome {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|package| !package.is_there()).map(|package| package.name).collect();
    if missing.is_empty() {
        println!("all there: {}", PACKAGES.map(|package| package.name).join(", "));
        return Ok(());
    }
    if can_install() {
        // The lists of a fresh machine are old or absent. What then is still missing is said below.
        let _ = run(&mut apt_get(&["update", "--quiet"]));
        let _ = run(apt_get(&["install", "--yes", "--quiet", "--no-install-recommends"]).args(&missing));
    }
    for package in PACKAGES.iter().filter(|package| !package.is_there()) {
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
