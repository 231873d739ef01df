//! Renders the book and checks it. mdBook itself succeeds on a missing include, a missing anchor and a dead link.

mod names;
mod rendered;
mod source;
#[cfg(test)]
mod tests;

use crate::command::{Failure, Outcome, cargo, root, run};
use std::path::{Path, PathBuf};
use std::{fs, io};

pub(crate) fn build() -> Outcome {
    let manifest = ["--manifest-path", "xtask/book/Cargo.toml", "--target-dir", "target/book-builder"];
    let output = root().join("target/book");
    run(cargo(["run", "--locked", "--quiet"]).args(manifest).args(["--", "book"]).arg(&output))?;

    let sources = check_sources().map_err(unreadable)?;
    let pages = rendered::check(&output).map_err(unreadable)?;
    let mistakes: Vec<String> = sources.into_iter().chain(pages).collect();
    if mistakes.is_empty() {
        println!("the book is in target/book/index.html");
        return Ok(());
    }
    Err(Failure::Book(mistakes))
}

/// What is wrong in the sources of the book, as far as it need not be rendered.
fn check_sources() -> io::Result<Vec<String>> {
    let crates = ["sdk/src", "schema/src"].map(|directory| root().join(directory));
    let names = names::Names::of(&crates.each_ref().map(PathBuf::as_path))?;
    source::check(&root().join("book/src"), &names)
}

fn unreadable(error: io::Error) -> Failure {
    Failure::Book(vec![format!("cannot be read: {error}")])
}

/// All files with this extension in a directory and below it, sorted.
fn files(directory: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
