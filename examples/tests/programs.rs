//! The programs that the book shows, as their readers start them.

use std::process::{Command, Output, Stdio};

/// Starts the ranks by hand, and returns what each printed and how it ended.
fn start(program: &str, ranks: usize, arguments: &[&str]) -> Vec<Output> {
    let address = format!("unix:gradwire-examples-{}-{ranks}-{}", std::process::id(), program.len());
    let children: Vec<_> = (0..ranks)
        .map(|rank| {
            Command::new(program)
                .args(arguments)
                .env("GRADWIRE_RANK", rank.to_string())
                .env("GRADWIRE_SIZE", ranks.to_string())
                .env("GRADWIRE_LOCAL_RANK", rank.to_string())
                .env("GRADWIRE_LOCAL_SIZE", ranks.to_string())
                .env("GRADWIRE_ADDRESS", &address)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    children.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

/// What a rank of a job that went well printed.
fn printed(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out.into_owned()
}

#[test]
fn hello() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_hello"), 2, &[]).iter().enumerate() {
        assert_eq!(printed(output), format!("rank {rank} of 2 has [1.0, 2.0]\n"));
    }
}

#[test]
fn disagree() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_disagree"), 2, &[]).iter().enumerate() {
        let lines = printed(output);
        assert!(lines.starts_with(&format!("rank {rank}: the ranks called different things: ")), "{lines}");
        assert!(lines.contains("1000") && lines.contains("1001"), "{lines}");
        assert!(lines.ends_with(&format!("rank {rank}: 2 each\n")), "{lines}");
    }
}

#[test]
fn own_ranks() {
    let output = printed(&Command::new(env!("CARGO_BIN_EXE_own_ranks")).output().unwrap());
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let expected =
        ["2 of 2 ranks ended well", "[0] rank 0 of 2 has [3.0, 30.0]", "[1] rank 1 of 2 has [3.0, 30.0]"];
    assert_eq!(lines, expected);
}

#[test]
fn point_to_point() {
    for output in start(env!("CARGO_BIN_EXE_point_to_point"), 3, &[]) {
        assert!(printed(&output).ends_with("the sum of all results is 2870\n"));
    }
}

#[test]
fn collectives() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_collectives"), 3, &[]).iter().enumerate() {
        assert_eq!(printed(output), format!("rank {rank} of 3: all as it should be\n"));
    }
}

#[test]
fn messages() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_messages"), 3, &[]).iter().enumerate() {
        let (first, rest) = (format!("rank {rank} has {} at its border\n", (rank + 2) % 3), printed(output));
        let last = if rank == 0 { "3 lines were reported\n" } else { "" };
        assert_eq!(rest, first + last);
    }
}

#[test]
fn requests() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_requests"), 3, &[]).iter().enumerate() {
        assert_eq!(printed(output), format!("rank {rank} of 3: all as it should be\n"));
    }
}

#[test]
fn windows() {
    for ranks in [1, 3] {
        let lines: Vec<String> =
            start(env!("CARGO_BIN_EXE_windows"), ranks, &[]).iter().map(printed).collect();
        let done = |line: &String| line.split(' ').nth(3).and_then(|count| count.parse::<usize>().ok());
        assert_eq!(lines.iter().map(|line| done(line).unwrap()).sum::<usize>(), 40, "{lines:?}");
    }
}

#[test]
fn communicators() {
    for ranks in [1, 2, 5] {
        for (rank, output) in start(env!("CARGO_BIN_EXE_communicators"), ranks, &[]).iter().enumerate() {
            assert_eq!(printed(output), format!("rank {rank} of {ranks} is done\n"));
        }
    }
}

#[test]
fn deriving_gradient() {
    printed(&Command::new(env!("CARGO_BIN_EXE_deriving_gradient")).output().unwrap());
}

#[test]
fn datatypes() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_datatypes"), 3, &[]).iter().enumerate() {
        assert_eq!(printed(output), format!("rank {rank} knows the state of all 3\n"));
    }
}

#[test]
fn operations() {
    for (rank, output) in start(env!("CARGO_BIN_EXE_operations"), 3, &[]).iter().enumerate() {
        assert_eq!(printed(output), format!("rank {rank} of 3: every operation gave what it should\n"));
    }
}

#[test]
fn digits_says_what_is_wrong_with_its_data_and_arguments() {
    let digits = env!("CARGO_BIN_EXE_digits");
    let alone = |arguments: &[&str]| {
        let output = Command::new(digits).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(alone(&["--data", "/nowhere/digits.csv"]).contains("cannot read /nowhere/digits.csv"));
    assert!(
        alone(&["--data", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
            .contains("Cargo.toml, line 1: ")
    );

    for (rank, output) in start(digits, 2, &["--ranks", "3"]).iter().enumerate() {
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("rank {rank}: the launcher has started 2 ranks")), "{said}");
    }
    for output in start(digits, 2, &["--corrupt-rank", "2"]) {
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--corrupt-rank must be from 0 to 1"));
    }
}
