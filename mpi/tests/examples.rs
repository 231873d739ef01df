//! The porting guide tells of each example of rsmpi by which test its behaviour is shown.

use std::collections::BTreeSet;
use std::process::Command;

/// The names of the examples that come with rsmpi.
fn examples() -> BTreeSet<String> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    // Packages for other platforms were not fetched.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform]);
    let output = cargo.args(["--manifest-path", manifest]).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("metadata");
    let packages = metadata["packages"].as_array().expect("packages");
    let rsmpi = packages.iter().find(|package| package["name"] == "mpi").expect("rsmpi");
    let targets = rsmpi["targets"].as_array().expect("targets").iter();
    let examples = targets.filter(|target| target["kind"][0] == "example");
    examples.filter_map(|target| target["name"].as_str()).map(str::to_owned).collect()
}

#[test]
fn the_porting_guide_knows_all_examples() {
    let (_, table) =
        include_str!("../../book/src/porting.md").split_once("| examples of rsmpi |").expect("a table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let named: Vec<&str> =
        cells.flat_map(|cell| cell.split(',')).map(|name| name.trim().trim_matches('`')).collect();
    let known: BTreeSet<String> = named.iter().map(ToString::to_string).collect();
    assert_eq!(known.len(), named.len(), "an example is named twice");
    assert_eq!(known, examples());
}
