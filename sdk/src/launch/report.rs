//! How the ranks of a job ended.
#![forbid(unsafe_code)]

use crate::Rank;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How all ranks of a job ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// By rank.
    pub endings: Vec<Ending>,
    /// The rank that failed first, if one did. Ranks that the launcher itself ended did not fail.
    pub first_failure: Option<Rank>,
    /// The signal that the launcher was told to pass on, if it was.
    pub interrupted_by: Option<super::Signal>,
    /// Whether the launcher ended the job because nobody reads its output any more.
    pub output_is_lost: bool,
}

/// How one rank ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal ended it, which the launcher did not send.
    Signal(i32),
    /// The launcher ended it, because another rank had failed or the launcher was interrupted.
    Stopped,
}

impl Report {
    /// Whether all ranks ended well.
    pub fn is_success(&self) -> bool {
        self.exit_code() == 0
    }

    /// What a launcher program should exit with: the code of the rank that failed first, 128 and the number of
    /// the signal that ended it, or 0.
    pub fn exit_code(&self) -> i32 {
        match (self.first_failure.and_then(|rank| self.endings.get(rank)), self.interrupted_by) {
            (_, Some(signal)) => 128 + signal.number(),
            (None, None) if self.output_is_lost => 128 + SIGPIPE,
            (Some(Ending::Signal(number)), _) => 128 + number,
            // Only the low byte reaches a parent: a failure must not look like success.
            (Some(Ending::Code(code)), _) if code & 0xff != 0 => code & 0xff,
            (Some(_), _) => 1,
            (None, None) if self.endings.iter().all(|ending| *ending == Ending::Code(0)) => 0,
            (None, None) => 1,
        }
    }
}

impl fmt::Display for Report {
    /// One line: `rank 2 failed first: killed by signal 9 (SIGKILL); 3 of 4 ranks ended well`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted: fn(&Ending) -> bool| self.endings.iter().filter(|ending| wanted(ending)).count();
        if let Some(signal) = self.interrupted_by {
            write!(f, "interrupted by {signal}; ")?;
        }
        if self.output_is_lost {
            f.write_str("nobody reads the output any more; ")?;
        }
        if let Some((rank, ending)) =
            self.first_failure.and_then(|rank| Some((rank, self.endings.get(rank)?)))
        {
            write!(f, "rank {rank} failed first: {ending}; ")?;
        }
        let well = count(|ending| *ending == Ending::Code(0));
        write!(f, "{well} of {} ranks ended well", self.endings.len())?;
        match count(|ending| *ending == Ending::Stopped) {
            0 => Ok(()),
            stopped => write!(f, ", {stopped} were ended by the launcher"),
        }
    }
}

impl Ending {
    pub(super) fn of(status: ExitStatus, was_stopped: bool) -> Self {
        match (status.code(), status.signal()) {
            (_, Some(_)) if was_stopped => Self::Stopped,
            (_, Some(signal)) => Self::Signal(signal),
            (code, None) => Self::Code(code.unwrap_or(-1)),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match name(*number) {
                Some(name) => write!(f, "killed by signal {number} ({name})"),
                None => write!(f, "killed by signal {number}"),
            },
            Self::Stopped => f.write_str("ended by the launcher"),
        }
    }
}

const SIGPIPE: i32 = 13;

/// The signals that commonly end a process, by their numbers on every Linux architecture Rust supports.
fn name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        SIGPIPE => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}
