//! Counting the tests that ran, by the summaries of `cargo nextest` and `cargo test`.

use crate::command::{Failure, Outcome, ended, text};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// `Summary [ 1.2s] 9 tests run: 8 passed, 1 failed, 0 skipped` or `test result: ok. 8 passed; 1 failed; ...`.
    fn of_line(line: &str) -> Self {
        if !line.starts_with("test result:") && !line.trim_start().starts_with("Summary [") {
            return Self::default();
        }
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_end_matches([',', ';'])).collect();
        let before = |what: &str| {
            let place = words.iter().position(|word| *word == what)?;
            words.get(place.checked_sub(1)?)?.parse().ok()
        };
        Self { passed: before("passed").unwrap_or(0), failed: before("failed").unwrap_or(0) }
    }

    /// Runs a command that tests, shows what it prints and adds up what it says.
    pub(crate) fn run(&mut self, command: &mut Command) -> Outcome {
        println!("$ {}", text(command));
        let not_started = |error, command: &Command| Failure::NotStarted(text(command), error);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| not_started(error, command))?;
        let out = child.stdout.take().map(|out| thread::spawn(|| forward(out, std::io::stdout())));
        let err = child.stderr.take().map(|err| thread::spawn(|| forward(err, std::io::stderr())));
        for reader in [out, err].into_iter().flatten() {
            self.add(reader.join().unwrap_or_default());
        }
        let status = child.wait().map_err(|error| not_started(error, command))?;
        ended(command, status)
    }
}

fn forward(from: impl Read, mut to: impl Write) -> Tally {
    let mut tally = Tally::default();
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        tally.add(Tally::of_line(&String::from_utf8_lossy(&line)));
        // Whoever no longer reads does not end the tests.
        let _ = to.write_all(&line).and_then(|()| to.write_all(b"\n"));
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_summaries_of_both_runners() {
        for (line, passed, failed) in [
            ("     Summary [   1.204s] 12 tests run: 11 passed (1 slow), 1 failed, 3 skipped", 11, 1),
            ("     Summary [   0.004s] 1 test run: 1 passed, 0 skipped", 1, 0),
            ("test result: ok. 8 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out", 8, 0),
            ("test result: FAILED. 8 passed; 2 failed; 1 ignored", 8, 2),
            ("test a_summary_of_8_passed ... ok", 0, 0),
            ("passed", 0, 0),
        ] {
            assert_eq!(Tally::of_line(line), Tally { passed, failed }, "{line}");
        }
    }
}
