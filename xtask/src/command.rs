//! Commands: each is printed before it runs.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::{Command, ExitStatus};

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a task ends.
#[derive(Debug)]
pub(crate) enum Failure {
    NotStarted(String, std::io::Error),
    Ended(String, ExitStatus),
    /// A command succeeded that should have failed.
    Undetected(String),
    /// What a comparison said last.
    Differing(String),
    /// Something that is needed is not there.
    Impossible(String),
    /// What is wrong in the book.
    Book(Vec<String>),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(command, error) => write!(f, "cannot be started: {error}: {command}"),
            Self::Ended(command, status) => write!(f, "ended with {status}: {command}"),
            Self::Undetected(command) => write!(f, "should have failed, but did not: {command}"),
            Self::Differing(verdict) => write!(f, "results differ: {verdict}"),
            Self::Impossible(missing) => write!(f, "cannot be done: {missing}"),
            Self::Book(mistakes) => write!(f, "the book: {}", mistakes.join("\nthe book: ")),
        }
    }
}

/// The workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// A command that runs at the root of the workspace.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that started this program.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(arguments);
    command
}

pub(crate) fn run(command: &mut Command) -> Outcome {
    println!("$ {}", text(command));
    let status = command.status().map_err(|error| Failure::NotStarted(text(command), error))?;
    ended(command, status)
}

/// As [`run`], for a command that must fail.
pub(crate) fn run_to_failure(command: &mut Command) -> Outcome {
    match run(command) {
        Ok(()) => Err(Failure::Undetected(text(command))),
        Err(Failure::Ended(_, status)) if status.code().is_some() => Ok(()),
        Err(failure) => Err(failure),
    }
}

pub(crate) fn ended(command: &Command, status: ExitStatus) -> Outcome {
    if status.success() { Ok(()) } else { Err(Failure::Ended(text(command), status)) }
}

/// The command as one would type it.
pub(crate) fn text(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.strip_prefix(root()).unwrap_or(program);
    let cargo = std::env::var_os("CARGO").is_some_and(|cargo| program == Path::new(&cargo));
    let program = if cargo { OsStr::new("cargo") } else { program.as_os_str() };
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy();
        Some(format!("{}={} ", name.to_string_lossy(), quoted(&value)))
    });
    let arguments = command.get_args().map(|argument| format!(" {}", quoted(&argument.to_string_lossy())));
    variables.chain([program.to_string_lossy().into_owned()]).chain(arguments).collect()
}

fn quoted(word: &str) -> String {
    if word.contains(|letter: char| letter.is_whitespace() || "'\"$&|;<>()*?".contains(letter)) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        word.to_owned()
    }
}
