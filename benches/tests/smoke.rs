//! Every bench of several ranks, with few bytes: all rows are there, and nothing is wrong. Nothing is said of time.

use std::process::Command;

/// The rows of a bench, as fields by column.
fn rows(arguments: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradwire-bench"));
    command.env("GRADWIRE_BENCH_CALLS", "20");
    let output =
        command.args(arguments).args(["--csv", "--series", "1", "--peers", "none"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = text.lines();
    let columns = "peer,version,transport,ranks,op,bytes,buffers,state,median_us,min_us,p99_us,wrong";
    assert_eq!(lines.next(), Some(columns));
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// As many rows of each operation over each transport as expected.
fn check(arguments: &[&str], expected: &[(&str, usize)]) {
    let rows = rows(arguments);
    for row in &rows {
        assert_eq!((&*row[0], &*row[11]), ("gradwire", "0"), "{row:?}");
        let times: Vec<f64> = row[8..11].iter().map(|time| time.parse().unwrap()).collect();
        assert!(times[1] > 0.0 && times[1] <= times[0] && times[0] <= times[2], "{row:?}");
    }
    for transport in ["shm", "tcp"] {
        for (op, count) in expected {
            let found = rows.iter().filter(|row| row[2] == transport && row[4] == *op).count();
            assert_eq!(found, *count, "{op} over {transport}");
        }
    }
    assert_eq!(rows.len(), 2 * expected.iter().map(|(_, count)| count).sum::<usize>());
}

/// One after the other: ranks of several benches at once would fight for the cores that each counts on.
#[test]
fn every_bench_has_all_rows() {
    // Two sizes, private and allocated, hot and dirty.
    check(&["all-reduce", "--sizes", "8,64k"], &[("all_reduce", 8)]);
    let expected = [("broadcast", 4), ("all_gather", 4), ("reduce_scatter", 4), ("barrier", 1)];
    check(&["collectives", "--sizes", "64k", "--ranks", "3"], &expected);
    check(&["p2p", "--sizes", "8,64k"], &[("ping_pong", 2), ("stream", 2)]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, words) in [
        (&["all-reduce", "--sizes", "7"][..], "no multiple of 4"),
        (&["all-reduce", "--peers", "nobody"], "nobody is no peer"),
        (&["collectives", "--op", "nothing", "--sizes", "8", "--peers", "none"], "nothing is no collective"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_gradwire-bench")).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
    }
}
