//! What is wrong in the Markdown: includes that lead nowhere, Rust code that no test runs, forgotten pages, names of
//! what does not exist.

use super::files;
use super::names::Names;
use std::path::Path;
use std::{fs, io};

pub(crate) fn check(directory: &Path, names: &Names) -> io::Result<Vec<String>> {
    let summary = fs::read_to_string(directory.join("SUMMARY.md"))?;
    let mut mistakes = Vec::new();
    for page in files(directory, "md")? {
        let name = page.strip_prefix(directory).unwrap_or(&page).display().to_string();
        if name != "SUMMARY.md" && !summary.contains(&format!("({name})")) {
            mistakes.push(format!("{name}: not in SUMMARY.md"));
        }
        let beside = page.parent().unwrap_or(directory);
        let text = fs::read_to_string(&page)?;
        let found = check_page(&text, |path| fs::read_to_string(beside.join(path)).ok());
        let found = found.into_iter().chain(names.check_page(&text));
        mistakes.extend(found.map(|(line, what)| format!("{name}:{line}: {what}")));
    }
    Ok(mistakes)
}

/// Line numbers and what is wrong there. `read` gives the text of a file by its path from the page.
pub(crate) fn check_page(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<(usize, String)> {
    let mut mistakes = Vec::new();
    let mut rust = false;
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            rust = fence.split([',', ' ']).next() == Some("rust");
        } else if let Some(target) = include(line) {
            mistakes.extend(check_include(target, &read).map(|what| (number, what)));
        } else if rust && !line.trim().is_empty() {
            mistakes.push((
                number,
                format!("Rust code that nothing compiles; include it from examples/: {line}"),
            ));
        }
    }
    mistakes
}

/// `../../examples/src/bin/hello.rs:all_reduce` of `{{#include ../../examples/src/bin/hello.rs:all_reduce}}`.
fn include(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("{{#")?;
    let (kind, rest) = rest.split_once(' ')?;
    let (target, _) = rest.split_once("}}")?;
    kind.ends_with("include").then_some(target.trim())
}

fn check_include(target: &str, read: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let (path, anchor) = target.split_once(':').unwrap_or((target, ""));
    let Some(text) = read(path) else { return Some(format!("cannot read {path}")) };
    // Lines move; names stay.
    if anchor.starts_with(|letter: char| letter.is_ascii_digit() || letter == ':') {
        return Some(format!("includes by line number; name an anchor: {target}"));
    }
    let start = text.lines().position(|line| ends_with_words(line, "ANCHOR:", anchor));
    let end = text.lines().position(|line| ends_with_words(line, "ANCHOR_END:", anchor));
    match (anchor.is_empty(), start, end) {
        (true, ..) => None,
        (false, Some(start), Some(end)) if start + 1 < end => None,
        (false, Some(_), Some(_)) => {
            Some(format!("nothing between the ends of the anchor {anchor} in {path}"))
        }
        _ => Some(format!("no anchor {anchor} in {path}, or it has no end")),
    }
}

fn ends_with_words(line: &str, keyword: &str, anchor: &str) -> bool {
    let mut words = line.split_whitespace().rev();
    words.next() == Some(anchor) && words.next() == Some(keyword)
}
