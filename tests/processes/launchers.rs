//! The same program under MPI's launchers, unchanged.

use crate::job::RANK;
use std::process::Command;

fn two_ranks_under(launcher: &str, arguments: &[&str]) {
    for transport in ["auto", "tcp"] {
        let mut command = Command::new(launcher);
        command.args(arguments).args(["-n", "2", RANK, "train"]).env("GRADWIRE_TRANSPORT", transport);
        let output = match command.output() {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("skipped: {launcher} is not installed");
                return;
            }
            Err(error) => panic!("{launcher}: {error}"),
        };
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}{complained}");
        for rank in 0..2 {
            assert!(said.contains(&format!("rank {rank} of 2 trained")), "{said}{complained}");
        }
    }
}

#[test]
fn open_mpi() {
    two_ranks_under("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe"]);
}

#[test]
fn hydra() {
    two_ranks_under("mpiexec.hydra", &[]);
}
