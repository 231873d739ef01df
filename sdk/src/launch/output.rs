//! The lines of the ranks, each with the rank in front.
#![forbid(unsafe_code)]

use crate::Rank;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::io::{IsTerminal, Result, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One output of one rank.
#[derive(Debug)]
pub(super) struct Lines {
    pipe: OwnedFd,
    prefixer: Prefixer,
    target: Target,
}

/// Which output of the launcher a line goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Output,
    Error,
}

/// What became of an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    /// More may be there.
    Some,
    /// More may come.
    None,
    /// It has ended.
    End,
}

impl Lines {
    pub(super) fn new(pipe: OwnedFd, rank: Rank, ranks: usize, target: Target) -> Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { pipe, prefixer: Prefixer::new(rank, ranks, target.is_coloured()), target })
    }

    /// Reads once and passes whole lines on; at the end also the rest. An error is one of the launcher's own
    /// output.
    pub(super) fn pass_on(&mut self) -> Result<Flow> {
        let mut piece = [0; 16 * 1024];
        let (flow, text) = match rustix::io::read(&self.pipe, &mut piece) {
            Ok(count) if count > 0 => (Flow::Some, self.prefixer.push(&piece[..count])),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Flow::None),
            Ok(_) | Err(_) => (Flow::End, self.prefixer.finish()),
        };
        self.target.write(&text)?;
        Ok(flow)
    }

    /// Passes on what has arrived, and no more.
    pub(super) fn drain(&mut self) -> Result<()> {
        loop {
            match self.pass_on()? {
                Flow::Some => {}
                Flow::None => return self.target.write(&self.prefixer.finish()),
                Flow::End => return Ok(()),
            }
        }
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Target {
    fn is_coloured(self) -> bool {
        let is_terminal = match self {
            Self::Output => std::io::stdout().is_terminal(),
            Self::Error => std::io::stderr().is_terminal(),
        };
        is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    fn write(self, text: &[u8]) -> Result<()> {
        match self {
            _ if text.is_empty() => Ok(()),
            Self::Output => {
                let mut output = std::io::stdout().lock();
                output.write_all(text)?;
                output.flush()
            }
            Self::Error => std::io::stderr().lock().write_all(text),
        }
    }
}

/// Puts a prefix in front of each line, whatever bytes it has.
#[derive(Debug)]
struct Prefixer {
    prefix: Vec<u8>,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
}

impl Prefixer {
    /// `[ 3] ` where there are more than ten ranks, so that lines stand below each other.
    fn new(rank: Rank, ranks: usize, is_coloured: bool) -> Self {
        let width = ranks.saturating_sub(1).to_string().len();
        let plain = format!("[{rank:width$}] ");
        // Cyan, yellow, green, magenta, blue, red.
        let colour = [36, 33, 32, 35, 34, 31][rank % 6];
        let prefix = if is_coloured { format!("\x1b[{colour}m{plain}\x1b[0m") } else { plain };
        Self { prefix: prefix.into_bytes(), partial: Vec::new() }
    }

    /// The lines that these bytes complete.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(bytes.len() + 256);
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LONGEST_LINE {
                text.append(&mut self.finish());
            }
        }
        text
    }

    /// The line that has begun, with an end.
    fn finish(&mut self) -> Vec<u8> {
        if self.partial.is_empty() {
            return Vec::new();
        }
        let line = std::mem::take(&mut self.partial);
        let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
        [&self.prefix, &line[..], end].concat()
    }
}

/// The longest line that is kept together.
const LONGEST_LINE: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_get_the_rank_however_they_arrive() {
        let mut lines = Prefixer::new(3, 4, false);
        assert_eq!(lines.push(b"one\ntw"), b"[3] one\n");
        assert_eq!(lines.push(b"o"), b"");
        assert_eq!(lines.push(b"\n\nthree"), b"[3] two\n[3] \n");
        assert_eq!(lines.finish(), b"[3] three\n");
        assert_eq!(lines.finish(), b"");
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        let mut lines = Prefixer::new(0, 1, false);
        assert_eq!(lines.push(b"\xff\x00\r\x1b\n"), b"[0] \xff\x00\r\x1b\n");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Prefixer::new(1, 2, false);
        let mut text = Vec::new();
        for _ in 0..9 {
            text.append(&mut lines.push(&[b'x'; 16 * 1024]));
        }
        text.append(&mut lines.finish());
        let lengths: Vec<usize> = text.split(|&byte| byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths, [LONGEST_LINE + 4, LONGEST_LINE + 4, 16 * 1024 + 4, 0]);
    }

    #[test]
    fn prefixes_stand_below_each_other_and_may_have_colours() {
        assert_eq!(Prefixer::new(3, 12, false).prefix, b"[ 3] ");
        assert_eq!(Prefixer::new(3, 10, false).prefix, b"[3] ");
        assert_eq!(Prefixer::new(7, 8, true).prefix, b"\x1b[33m[7] \x1b[0m");
    }
}
