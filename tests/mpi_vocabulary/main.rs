//! What the first programs of an MPI course do, in the words of this library: with 2, 3 and 5 ranks, over shared memory
//! and over TCP.

#![forbid(unsafe_code)]

mod blocks;
mod datatypes;
mod grids;
mod groups;
mod later;
mod messages;
mod reductions;
mod starting;
mod windows;

use gradwire::Communicator;
use gradwire_tests::ranks::{Over, run};

fn everywhere(program: impl Fn(Communicator) + Sync) {
    for over in [Over::Shm, Over::Tcp] {
        for ranks in [2, 3, 5] {
            run(over, ranks, &program);
        }
    }
}

/// What the porting guide says of rsmpi's examples: the names of tests that are there. Whether it knows all examples is tested
/// where rsmpi is.
#[test]
fn the_porting_guide_names_tests_that_exist() {
    let sources = [
        ("blocks", include_str!("blocks.rs")),
        ("datatypes", include_str!("datatypes.rs")),
        ("grids", include_str!("grids.rs")),
        ("groups", include_str!("groups.rs")),
        ("later", include_str!("later.rs")),
        ("messages", include_str!("messages.rs")),
        ("reductions", include_str!("reductions.rs")),
        ("starting", include_str!("starting.rs")),
    ];
    let exists = |name: &str| {
        let (module, test) = name.split_once("::").unwrap_or_default();
        let needle = format!("#[test]\nfn {test}() {{\n");
        sources.iter().any(|(name, source)| *name == module && source.contains(&needle))
    };
    let (_, table) = include_str!("../../book/src/porting.md").split_once("| examples of rsmpi |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let tests: Vec<&str> = rows.filter_map(|row| row.split('|').nth(2)).map(str::trim).collect();
    assert!(tests.len() > 30, "{tests:?}");
    for test in tests.into_iter().filter(|test| *test != "none").flat_map(|tests| tests.split(", ")) {
        assert!(exists(test.trim_matches('`')), "there is no test {test}");
    }
}
