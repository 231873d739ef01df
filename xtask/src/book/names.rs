//! Names in tables: what a column headed `Gradwire` calls must exist.

use super::files;
use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// What the crates define.
#[derive(Default)]
pub(crate) struct Names {
    functions: BTreeSet<String>,
    /// Types, traits and variants.
    types: BTreeSet<String>,
}

/// What tables may name besides.
const STANDARD: [&str; 9] = ["Drop", "Err", "Future", "None", "Ok", "Result", "Some", "Vec", "u64"];

impl Names {
    /// Those of all Rust files in some directories.
    pub(crate) fn of(directories: &[&Path]) -> io::Result<Self> {
        let mut this = Self::default();
        for directory in directories {
            for file in files(directory, "rs")? {
                this.read(&fs::read_to_string(file)?);
            }
        }
        Ok(this)
    }

    pub(crate) fn read(&mut self, source: &str) {
        for line in source.lines() {
            let words: Vec<&str> = words(line).collect();
            let public = words.first() == Some(&"pub") && !line.trim_start().starts_with("pub(");
            for pair in words.windows(2) {
                match pair[0] {
                    "fn" if public => _ = self.functions.insert(pair[1].to_owned()),
                    "struct" | "enum" | "trait" | "type" if public => {
                        _ = self.types.insert(pair[1].to_owned());
                    }
                    _ => {}
                }
            }
            // A variant stands at the beginning of its line.
            if let Some(first) =
                words.first().filter(|word| is_type(word) && line.trim_start().starts_with(**word))
            {
                self.types.insert((*first).to_owned());
            }
        }
    }

    /// Line numbers and what is named there that does not exist.
    pub(crate) fn check_page(&self, page: &str) -> Vec<(usize, String)> {
        let mut mistakes = Vec::new();
        let mut column = None;
        for (number, line) in (1..).zip(page.lines()) {
            let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
            if !line.starts_with('|') {
                column = None;
            } else if let Some(found) = cells.iter().position(|cell| *cell == "Gradwire") {
                column = Some(found);
            } else if let Some(cell) = column.and_then(|column| cells.get(column)) {
                let codes = cell.split('`').skip(1).step_by(2);
                mistakes.extend(codes.flat_map(|code| self.missing(code)).map(|name| (number, name)));
            }
        }
        mistakes
    }

    fn missing(&self, code: &str) -> Vec<String> {
        if code.starts_with("#[") {
            return Vec::new();
        }
        let mut missing = Vec::new();
        for word in words(code) {
            let rest = &code[word.as_ptr().addr() - code.as_ptr().addr() + word.len()..];
            let is_call = rest.starts_with('(') || rest.starts_with("::<") || word == code;
            let is_function = word.starts_with(|letter: char| letter.is_ascii_lowercase());
            if STANDARD.contains(&word) {
                continue;
            }
            if is_function && is_call && !self.functions.contains(word) {
                missing.push(format!("there is no function `{word}`"));
            } else if is_type(word) && !self.types.contains(word) {
                missing.push(format!("there is no type `{word}`"));
            }
        }
        missing
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// `AbortHandle`; not `T`, and no variable of the environment.
fn is_type(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_uppercase())
        && word.contains(|letter: char| letter.is_ascii_lowercase())
}
