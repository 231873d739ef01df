//! Open MPI, where it is installed: a small C program, compiled here and started by its own launcher.

use crate::table::Row;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiled peer.
#[derive(Debug)]
pub(crate) struct Peer {
    program: PathBuf,
    version: String,
}

/// Compiles the peer of a bench, `peers/NAME.c`; `None`, and a line that says so, where there is no Open MPI.
pub(crate) fn prepare(name: &str) -> io::Result<Option<Peer>> {
    let Some(version) = version() else {
        eprintln!(
            "openmpi is skipped: mpirun.openmpi or mpicc.openmpi is missing (Debian: openmpi-bin libopenmpi-dev)"
        );
        return Ok(None);
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = folder.join("peers").join(name).with_extension("c");
    let program = folder.join("../target").join(format!("peer-{name}-openmpi"));
    let status = Command::new("mpicc.openmpi").args(["-O2", "-o"]).arg(&program).arg(&source).status();
    match status {
        Ok(status) if status.success() => Ok(Some(Peer { program, version })),
        _ => {
            eprintln!("openmpi is skipped: mpicc.openmpi does not compile {}", source.display());
            Ok(None)
        }
    }
}

fn version() -> Option<String> {
    let output = Command::new("mpirun.openmpi").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().next()?.rsplit(' ').next()?.to_owned())
}

impl Peer {
    /// One series.
    pub(crate) fn run(&self, transport: &str, ranks: usize, sizes: &[usize]) -> io::Result<Vec<Row>> {
        let mut command = Command::new("mpirun.openmpi");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.args(["--oversubscribe", "-n"]).arg(ranks.to_string());
        if transport == "tcp" {
            command.args(["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]);
        }
        command.arg(&self.program).args([transport, &self.version]);
        command.args(sizes.iter().map(usize::to_string));
        let output = command.output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        String::from_utf8_lossy(&output.stdout).lines().map(Row::parse).collect()
    }
}
