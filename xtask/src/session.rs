//! One run of all checks: headings, times, and the account at the end.

use crate::command::{Failure, Outcome};
use crate::tally::Tally;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// One thing that is checked.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Session) -> Outcome,
}

#[derive(Default)]
pub(crate) struct Session {
    /// How many tests passed and failed.
    pub(crate) tally: Tally,
    /// What is not tested, and what is missing for it.
    pub(crate) not_tested: Vec<String>,
    times: Vec<(&'static str, Duration)>,
}

impl Session {
    /// Runs the steps up to the first failure.
    pub(crate) fn run(mut self, steps: &[Step]) -> ExitCode {
        for (number, step) in (1..).zip(steps) {
            println!("\n== {number}/{}  {} ==", steps.len(), step.name);
            let start = Instant::now();
            let outcome = (step.run)(&mut self);
            self.times.push((step.name, start.elapsed()));
            if let Err(failure) = outcome {
                return self.close(Some((step.name, failure)));
            }
            println!("ok: {}, {:.1} s", step.name, start.elapsed().as_secs_f64());
        }
        self.close(None)
    }

    fn close(&self, failure: Option<(&str, Failure)>) -> ExitCode {
        println!("\n== account ==");
        for (name, time) in &self.times {
            println!("{:>8.1} s  {name}", time.as_secs_f64());
        }
        let total: Duration = self.times.iter().map(|(_, time)| *time).sum();
        println!("{:>8.1} s  total", total.as_secs_f64());
        for missing in &self.not_tested {
            println!("NOT TESTED: {missing}");
        }
        let Tally { passed, mut failed } = self.tally;
        if let Some((step, failure)) = &failure {
            println!("FAILED: {step}: {failure}");
            failed = failed.max(1);
        }
        println!("{passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
