//! Renders the book at the first argument into the directory at the second. `cargo xtask book` also checks it.
#![forbid(unsafe_code)]

use mdbook_driver::MDBook;
use mdbook_driver::errors::Result;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(book), Some(output)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: gradwire-book BOOK OUTPUT");
        return ExitCode::FAILURE;
    };
    match render(book, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the book cannot be rendered: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn render(book: PathBuf, output: PathBuf) -> Result<()> {
    let mut book = MDBook::load(book)?;
    book.config.build.build_dir = output;
    book.build()
}
