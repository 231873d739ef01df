//! Where libfabric is asked for: a tight limit, a provider that is not there, a library that is not there.

use crate::job::RANK;
use gradwire_tests::ranks::Over;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Two ranks behind `wrapper`, each with how it ended.
fn two_ranks(wrapper: &[&str], variables: &[(&str, &str)]) -> [Output; 2] {
    // Free a moment ago; the one that meets there takes it at once.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = |rank: &str| {
        let (program, arguments) =
            wrapper.split_first().map_or((RANK, &[][..]), |(first, rest)| (*first, rest));
        let mut command = Command::new(program);
        command.args(arguments);
        if program != RANK {
            command.arg(RANK);
        }
        command
            .arg("train")
            .env("GRADWIRE_RANK", rank)
            .env("GRADWIRE_SIZE", "2")
            .env("GRADWIRE_ADDRESS", format!("127.0.0.1:{port}"))
            .env("GRADWIRE_TRANSPORT", "libfabric")
            .env("GRADWIRE_START_TIMEOUT", "20s")
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    ["0", "1"].map(start).map(|child| child.wait_with_output().unwrap())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_limit_of_64_kib_of_locked_memory_is_enough_without_a_card() {
    Over::Libfabric.try_out(|_| {
        let wrapper = ["sh", "-c", "ulimit -l 64 && exec \"$@\"", "sh"];
        for (rank, output) in
            two_ranks(&wrapper, &[("GRADWIRE_FABRIC_PROVIDER", "tcp;ofi_rxm")]).iter().enumerate()
        {
            let said = said(output);
            assert!(output.status.success(), "{said}");
            assert!(said.contains(&format!("rank {rank} of 2 trained")), "{said}");
        }
    });
}

#[test]
fn a_provider_that_is_not_there_is_named_and_so_are_those_that_are() {
    Over::Libfabric.try_out(|_| {
        for output in &two_ranks(&[], &[("GRADWIRE_FABRIC_PROVIDER", "gold")]) {
            let said = said(output);
            assert!(!output.status.success(), "{said}");
            for words in ["no provider gold", "tcp;ofi_rxm", "fi_info -t FI_EP_RDM", "GRADWIRE_TRANSPORT=tcp"]
            {
                assert!(said.contains(words), "{words}: {said}");
            }
        }
    });
}

#[test]
fn a_library_that_is_not_there_is_to_be_installed() {
    // The loader looks there first, and goes no further.
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("no-libfabric-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("libfabric.so.1"), "no library").unwrap();
    let outputs = two_ranks(&[], &[("LD_LIBRARY_PATH", directory.to_str().unwrap())]);
    std::fs::remove_dir_all(&directory).unwrap();
    for output in &outputs {
        let said = said(output);
        assert!(!output.status.success(), "{said}");
        for words in ["libfabric is not present", "libfabric1", "GRADWIRE_TRANSPORT=tcp"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
