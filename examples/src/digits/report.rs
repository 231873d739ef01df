//! What rank 0 shows: a bar while the ranks train, and a report at the end.

use super::check::{ACCURACY, Account, TOLERANCE};
use super::training::Settings;
use super::{Gradients, Network};
use gradwire::Communicator;
use indicatif::{ProgressBar, ProgressStyle};
use std::mem;

const MIB: f64 = (1 << 20) as f64;

/// A bar, and a line an epoch.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    has_lines: bool,
    steps_per_epoch: u64,
    epochs: usize,
    /// Of the steps of this epoch.
    loss: f32,
    norm: f32,
}

impl Progress {
    /// To be shown by one rank only: two bars on one terminal are none.
    #[must_use]
    pub fn new(what: &'static str, settings: &Settings<'_>, is_shown: bool) -> Self {
        let bar = if is_shown { ProgressBar::new(settings.steps() as u64) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("  {msg} {wide_bar} {pos}/{len} steps, {eta} left") {
            bar.set_style(style);
        }
        bar.set_message(what);
        let steps_per_epoch = settings.steps_per_epoch() as u64;
        Self { bar, has_lines: is_shown, steps_per_epoch, epochs: settings.epochs, loss: 0.0, norm: 0.0 }
    }

    /// Only the bar.
    #[must_use]
    pub fn without_lines(self) -> Self {
        Self { has_lines: false, ..self }
    }

    /// After a step.
    pub fn step(&mut self, gradients: &Gradients) {
        self.bar.inc(1);
        self.loss += gradients.loss / self.steps_per_epoch as f32;
        self.norm = self.norm.max(gradients.norm);
        if self.bar.position().is_multiple_of(self.steps_per_epoch) {
            let (epoch, epochs) = (self.bar.position() / self.steps_per_epoch, self.epochs);
            let (loss, norm) = (mem::take(&mut self.loss), mem::take(&mut self.norm));
            if self.has_lines {
                let line =
                    format!("  epoch {epoch}/{epochs}   loss {loss:.4}   largest gradient norm {norm:.2}");
                self.bar.suspend(|| println!("{line}"));
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is trained, and where.
pub fn print_heading(comm: &Communicator, settings: &Settings<'_>, threads: usize) {
    let mut paths: Vec<&str> = (1..comm.size()).filter_map(|rank| comm.path(rank)).collect();
    paths.sort_unstable();
    paths.dedup();
    let over = if paths.is_empty() { String::new() } else { format!(" over {}", paths.join(" and ")) };
    let (ranks, images) = (comm.size(), settings.images.len());
    println!(
        "{} parameters, {images} images; ranks: {ranks}{over}; threads of each: {threads}",
        parameters()
    );
}

/// The report. `right` of `tested` test images were read right.
pub fn print(accounts: &[Account], right: u64, tested: u64) {
    let accuracy = 100.0 * right as f64 / tested as f64;
    let difference = accounts.iter().map(|account| account.difference).fold(0.0, f32::max);
    let bytes = (4 * parameters()) as f64;
    let ranks = accounts.len() as f64;
    // A rank must send what the others reduce of its contribution, and the part that it reduces to the others.
    let moved = 2.0 * (ranks - 1.0) / ranks * bytes;

    println!();
    println!(
        "test accuracy              {accuracy:.1} %, {right} of {tested} images (at least {:.0} %)",
        100.0 * ACCURACY
    );
    println!(
        "difference to one process  {difference:.1e}, the largest of any weight (at most {TOLERANCE:.0e})"
    );
    println!("gradients of a step        {:.2} MiB on each rank", bytes / MIB);
    println!("moved in a step            {:.2} MiB from each rank and as much to it", moved / MIB);
    println!();
    println!("rank   computation      waiting   communication   weights (SHA-256)    (times: median step)");
    for (rank, account) in accounts.iter().enumerate() {
        let [computation, waiting, communication] =
            [account.computation, account.waiting, account.communication].map(|seconds| 1e3 * seconds);
        let hash: String = account.weights[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{rank:>4}   {computation:>8.2} ms {waiting:>9.2} ms {communication:>12.2} ms   {hash}");
    }
}

/// That everything is as it should be.
pub fn print_verdict() {
    println!(
        "\nAll is well: every rank has the same weights, and they are those that one process arrives at."
    );
}

fn parameters() -> usize {
    Network::zeros().tensors().iter().map(|tensor| tensor.len()).sum()
}
