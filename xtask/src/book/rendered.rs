//! What is wrong in the rendered pages: links within the book that lead nowhere. Others are not followed.

use super::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

pub(crate) fn check(directory: &Path) -> io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in files(directory, "html")? {
        let name = path.strip_prefix(directory).unwrap_or(&path).to_path_buf();
        pages.insert(name, fs::read_to_string(&path)?);
    }
    Ok(dead_links(&pages, |path| directory.join(path).is_file()))
}

/// The dead links of all pages; `exists` answers for files that are no pages.
pub(crate) fn dead_links(pages: &BTreeMap<PathBuf, String>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let names: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(path, page)| (path, attributes(page, "id").collect())).collect();
    let mut dead = Vec::new();
    for (path, page) in pages {
        // It repeats all pages, and the 404 page may be served at any address.
        if ["print.html", "404.html"].contains(&path.to_string_lossy().as_ref()) {
            continue;
        }
        for link in attributes(page, "href").chain(attributes(page, "src")).filter(|link| !is_external(link))
        {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { resolved(path, file) };
            let alive = match names.get(&target) {
                Some(names) => fragment.is_empty() || names.contains(fragment),
                None => exists(&target),
            };
            if !alive {
                dead.push(format!("{}: dead link: {link}", path.display()));
            }
        }
    }
    dead
}

/// The values of an attribute, wherever it stands.
fn attributes<'a>(page: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let mut rest = page;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&start)?;
        let (value, after) = after.split_once('"')?;
        rest = after;
        Some(value)
    })
}

fn is_external(link: &str) -> bool {
    ["http:", "https:", "mailto:", "data:"].iter().any(|scheme| link.starts_with(scheme))
}

/// `decisions/../design.html`, seen from its page, as a path from the root of the book.
fn resolved(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for component in Path::new(link).components() {
        match component {
            Component::ParentDir => _ = path.pop(),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}
