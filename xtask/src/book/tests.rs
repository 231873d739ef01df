use super::names::Names;
use super::rendered::dead_links;
use super::source::check_page;
use std::path::{Path, PathBuf};

fn mistakes(page: &str) -> Vec<String> {
    let program = "// ANCHOR: sum\nlet sum = 1;\n// ANCHOR_END: sum\n// ANCHOR: empty\n// ANCHOR_END: empty\n// ANCHOR: open\n";
    let found = check_page(page, |path| (path == "program.rs").then(|| program.to_owned()));
    found.into_iter().map(|(line, what)| format!("{line}: {what}")).collect()
}

#[test]
fn the_book_is_in_order() {
    assert_eq!(super::check_sources().unwrap(), [""; 0]);
}

#[test]
fn includes_must_lead_somewhere() {
    assert_eq!(
        mistakes("```rust\n{{#include program.rs:sum}}\n```\n{{#rustdoc_include program.rs}}"),
        [""; 0]
    );
    for (page, part) in [
        ("{{#include gone.rs}}", "1: cannot read gone.rs"),
        ("\n{{#include gone.rs:sum}}", "2: cannot read gone.rs"),
        ("{{#include program.rs:su}}", "1: no anchor su in program.rs"),
        ("{{#include program.rs:open}}", "1: no anchor open in program.rs"),
        ("{{#include program.rs:empty}}", "1: nothing between the ends of the anchor empty"),
        ("{{#include program.rs:1:3}}", "1: includes by line number"),
    ] {
        let found = mistakes(page);
        assert!(found.len() == 1 && found[0].starts_with(part), "{page}: {found:?}");
    }
}

#[test]
fn rust_code_is_included_and_other_code_need_not_be() {
    assert_eq!(
        mistakes("```text\nfn\n```\n\n```rust,ignore\n{{#include program.rs:sum}}\n\n```\nfn"),
        [""; 0]
    );
    let found = mistakes("```rust,no_run\nlet x = 1;\n```");
    assert!(found.len() == 1 && found[0].starts_with("2: Rust code"), "{found:?}");
}

#[test]
fn links_must_lead_to_a_page_and_to_a_heading() {
    let page = |links: &str| format!("<h2 id=\"here\"></h2>{links}");
    let dead = |links: &str| {
        let pages =
            [("index.html", page(links)), ("decisions/one.html", page("<a href=\"../index.html#here\">"))];
        let pages = pages.into_iter().map(|(path, page)| (PathBuf::from(path), page)).collect();
        dead_links(&pages, |path| path == Path::new("picture.svg"))
    };
    let alive = "<a href=\"#here\"><a href=\"decisions/one.html#here\"><img src=\"picture.svg\"><a href=\"https://a.b/c\">";
    assert_eq!(dead(alive), [""; 0]);
    for link in
        ["#there", "decisions/one.html#there", "decisions/two.html", "../index.html#there", "other.svg"]
    {
        assert_eq!(dead(&format!("<a href=\"{link}\">")), [format!("index.html: dead link: {link}")]);
    }
}

#[test]
fn tables_name_what_exists() {
    let mut names = Names::default();
    names.read("    pub fn all_reduce<T>(&self) {}\n    pub(crate) fn hidden() {}\npub enum Source {\n    Any,\n}\nfn own() {}");
    let table = |cell: &str| {
        format!("| MPI | Gradwire | gone() |\n| --- | --- | --- |\n| `Gone` | {cell} | `gone()` |")
    };
    for fine in [
        "`all_reduce(&mut values)`",
        "`all_reduce`, `Source::Any`, `None`",
        "`GRADWIRE_LOG`, gone",
        "`#[gone(Gone)]`",
    ] {
        assert_eq!(names.check_page(&table(fine)), []);
    }
    for (wrong, what) in [
        ("`comm.all_gather(x)`", "function `all_gather`"),
        ("`all_reduce(all_gather::<T>(e))`", "function `all_gather`"),
        ("`hidden()`", "function `hidden`"),
        ("`own`", "function `own`"),
        ("`Sink::Any`", "type `Sink`"),
    ] {
        assert_eq!(names.check_page(&table(wrong)), [(3, format!("there is no {what}"))]);
    }
    assert_eq!(names.check_page("| MPI | other |\n| --- | --- |\n| x | `gone()` |"), []);
}
