//! Watches the ranks until all have ended: their output, their ends, and who must be told to end.
#![forbid(unsafe_code)]

use super::output::{Flow, Lines, Target};
use super::{Ending, Interrupter, Launcher, OnFailure, Output, Report, Signal};
use crate::bootstrap::wait_until;
use crate::{Error, Rank, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a rank has after SIGTERM before SIGKILL.
const AFTER_TERMINATE: Duration = Duration::from_secs(2);
/// How often to look where the kernel does not tell when a process ends.
const LOOK: Duration = Duration::from_millis(20);

/// The ranks of a running job. Dropping it kills them.
#[derive(Debug)]
pub(super) struct Supervisor {
    ranks: Vec<Process>,
    interrupter: Interrupter,
    on_failure: OnFailure,
    grace: Duration,
    output: Output,
    size: usize,
    stage: Stage,
    first_failure: Option<Rank>,
    interrupted_by: Option<Signal>,
    output_is_lost: bool,
}

/// How far the job is from being ended.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Running,
    /// A rank has failed: until then the others may report and end.
    Grace(Instant),
    /// All were told to end: until then they may.
    Ending(Instant),
    Killed,
}

#[derive(Debug)]
struct Process {
    child: Child,
    id: Pid,
    /// Readable when it has ended, where the kernel has such descriptors.
    watch: Option<OwnedFd>,
    outputs: [Option<Lines>; 2],
    ending: Option<Ending>,
    was_stopped: bool,
}

/// What a descriptor that is ready belongs to.
#[derive(Clone, Copy)]
enum Ready {
    Interrupt,
    End,
    Output(Rank, usize),
}

impl Supervisor {
    pub(super) fn new(launcher: &Launcher, interrupter: Interrupter, size: usize) -> Self {
        Self {
            ranks: Vec::new(),
            interrupter,
            on_failure: launcher.on_failure,
            grace: launcher.grace,
            output: launcher.output,
            size,
            stage: Stage::Running,
            first_failure: None,
            interrupted_by: None,
            output_is_lost: false,
        }
    }

    /// Takes the next rank in.
    pub(super) fn add(&mut self, mut child: Child) -> Result<()> {
        let id = Pid::from_child(&child);
        let watch = pidfd_open(id, PidfdFlags::empty()).ok();
        let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        let rank = self.ranks.len();
        self.ranks.push(Process {
            child,
            id,
            watch,
            outputs: [None, None],
            ending: None,
            was_stopped: false,
        });
        for ((output, pipe), target) in
            self.ranks[rank].outputs.iter_mut().zip(pipes).zip([Target::Output, Target::Error])
        {
            let lines = pipe.map(|pipe| Lines::new(pipe, rank, self.size, target)).transpose();
            *output = lines.map_err(|error| system(&error))?;
        }
        Ok(())
    }

    /// Returns when all ranks have ended.
    pub(super) fn run(mut self) -> Result<Report> {
        while self.ranks.iter().any(|process| process.ending.is_none()) {
            let now = Instant::now();
            self.advance(now);
            let ready = self.wait(now).map_err(|error| system(&error))?;
            for ready in ready {
                match ready {
                    Ready::Interrupt => self.interrupt(Instant::now()),
                    Ready::Output(rank, index) => self.pass_on(rank, index),
                    Ready::End => {}
                }
            }
            self.collect(Instant::now());
        }
        for process in &mut self.ranks {
            for lines in process.outputs.iter_mut().flatten() {
                self.output_is_lost |= lines.drain().is_err();
            }
        }
        let endings = self.ranks.iter().filter_map(|process| process.ending).collect();
        let Self { first_failure, interrupted_by, output_is_lost, .. } = self;
        Ok(Report { endings, first_failure, interrupted_by, output_is_lost })
    }

    fn wait(&self, now: Instant) -> std::io::Result<Vec<Ready>> {
        let mut sources = vec![(Ready::Interrupt, self.interrupter.as_fd())];
        let mut is_blind = false;
        for (rank, process) in self.ranks.iter().enumerate() {
            match &process.watch {
                Some(watch) if process.ending.is_none() => sources.push((Ready::End, watch.as_fd())),
                None if process.ending.is_none() => is_blind = true,
                _ => {}
            }
            for (index, lines) in process.outputs.iter().enumerate() {
                sources.extend(lines.iter().map(|lines| (Ready::Output(rank, index), lines.as_fd())));
            }
        }
        let mut descriptors: Vec<PollFd<'_>> =
            sources.iter().map(|&(_, fd)| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let stage = match self.stage {
            Stage::Grace(until) | Stage::Ending(until) => Some(until),
            Stage::Running | Stage::Killed => None,
        };
        wait_until(&mut descriptors, stage.into_iter().chain(is_blind.then_some(now + LOOK)).min())?;
        let ready =
            sources.iter().zip(&descriptors).filter(|(_, descriptor)| !descriptor.revents().is_empty());
        Ok(ready.map(|(&(ready, _), _)| ready).collect())
    }

    /// Goes to the next stage when its time has come.
    fn advance(&mut self, now: Instant) {
        match self.stage {
            Stage::Grace(until) if until <= now => {
                self.say("the grace period is over: ending the other ranks");
                self.signal(rustix::process::Signal::TERM);
                self.stage = Stage::Ending(now + AFTER_TERMINATE);
            }
            Stage::Ending(until) if until <= now => self.kill(),
            _ => {}
        }
    }

    fn interrupt(&mut self, now: Instant) {
        let Some((signal, count)) = self.interrupter.take() else { return };
        let is_repeated = self.interrupted_by.replace(signal).is_some() || count > 1;
        if is_repeated {
            self.kill();
        } else {
            self.signal(signal.raw());
            self.stage = Stage::Ending(now + self.grace);
        }
    }

    fn pass_on(&mut self, rank: Rank, index: usize) {
        let output = &mut self.ranks[rank].outputs[index];
        match output.as_mut().map(Lines::pass_on) {
            None | Some(Ok(Flow::Some | Flow::None)) => {}
            Some(Ok(Flow::End)) => *output = None,
            Some(Err(_)) => {
                *output = None;
                self.lose_output();
            }
        }
    }

    /// Whoever read our output is gone, as in `gradwire run ... | head`.
    fn lose_output(&mut self) {
        if !std::mem::replace(&mut self.output_is_lost, true) {
            self.signal(rustix::process::Signal::TERM);
            self.stage = Stage::Ending(Instant::now() + AFTER_TERMINATE);
        }
    }

    /// Notes which ranks have ended, and which failed first.
    fn collect(&mut self, now: Instant) {
        let mut failures = Vec::new();
        for (rank, process) in self.ranks.iter_mut().enumerate() {
            if process.ending.is_some() || !process.has_ended() {
                continue;
            }
            let ending = process.collect();
            if !matches!(ending, Ending::Code(0) | Ending::Stopped) && !process.was_stopped {
                failures.push((rank, ending));
            }
        }
        let Some((rank, ending)) = first(&failures) else { return };
        if self.first_failure.is_some() {
            return;
        }
        self.first_failure = Some(rank);
        let others = self.ranks.iter().filter(|process| process.ending.is_none()).count();
        if self.on_failure == OnFailure::Stop && self.stage == Stage::Running && others > 0 {
            self.say(&format!("rank {rank} failed: {ending}; {others} others have {:?} to end", self.grace));
            self.stage = Stage::Grace(now + self.grace);
        }
    }

    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.stage = Stage::Killed;
    }

    /// Sends a signal to every rank that has not ended, and all that it has started.
    fn signal(&mut self, signal: rustix::process::Signal) {
        for process in self.ranks.iter_mut().filter(|process| process.ending.is_none()) {
            process.was_stopped = true;
            // It fails only when the group is gone already.
            let _ = kill_process_group(process.id, signal);
        }
    }

    fn say(&self, text: &str) {
        match self.output {
            // Where nobody listens any more, nothing is said: no reason to panic.
            Output::Prefixed => drop(writeln!(std::io::stderr(), "gradwire: {text}")),
            Output::Inherited => tracing::warn!("{text}"),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        for process in self.ranks.iter_mut().filter(|process| process.ending.is_none()) {
            process.collect();
        }
    }
}

impl Process {
    /// Looks, and leaves it to be collected: until then nobody else gets its number.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.id), options), Ok(Some(_)))
    }

    /// Waits for its end, and ends what it has left running in its group.
    fn collect(&mut self) -> Ending {
        let _ = kill_process_group(self.id, rustix::process::Signal::KILL);
        let ending = match self.child.wait() {
            Ok(status) => Ending::of(status, self.was_stopped),
            Err(_) => Ending::Stopped,
        };
        *self.ending.insert(ending)
    }
}

/// Which of the failures that were seen at once came first: one that was killed cannot have been reacting to
/// another.
fn first(failures: &[(Rank, Ending)]) -> Option<(Rank, Ending)> {
    let is_killed = |(_, ending): &&(Rank, Ending)| matches!(ending, Ending::Signal(_));
    failures.iter().find(is_killed).or(failures.first()).copied()
}

fn system(error: &std::io::Error) -> Error {
    Error::System(Arc::from(format!("the launcher cannot watch its ranks: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_failures_seen_at_once_the_killed_one_was_first() {
        assert_eq!(first(&[]), None);
        let (code, signal) = (Ending::Code(1), Ending::Signal(9));
        assert_eq!(first(&[(0, code), (2, code)]), Some((0, code)));
        assert_eq!(first(&[(0, code), (2, signal), (3, signal)]), Some((2, signal)));
    }
}
