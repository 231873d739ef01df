//! Timing, counting and printing.

use crate::counting;
use std::time::{Duration, Instant};

/// How long one side of a row is measured.
const BUDGET: Duration = Duration::from_millis(200);
/// How long one sample takes at least: long beside the clock's own cost.
const SAMPLE: Duration = Duration::from_micros(20);

/// What a piece of work costs.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) nanoseconds: f64,
    pub(super) allocations: u64,
}

/// The median cost of `work`, warm.
pub(super) fn time(mut work: impl FnMut()) -> Cost {
    let mut run = |repeats: u32| {
        let start = Instant::now();
        for _ in 0..repeats {
            work();
        }
        start.elapsed()
    };
    let mut repeats = 1;
    while run(repeats) < SAMPLE {
        repeats *= 2;
    }
    let (_, allocations) = counting::count(|| run(1));
    let start = Instant::now();
    let mut samples = Vec::new();
    while start.elapsed() < BUDGET || samples.len() < 15 {
        samples.push(run(repeats).as_secs_f64() * 1e9 / f64::from(repeats));
    }
    Cost { nanoseconds: median(&mut samples), allocations }
}

pub(super) fn median(samples: &mut [f64]) -> f64 {
    let middle = samples.len() / 2;
    *samples.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Counts copied bytes.
pub(super) struct Copies;

impl Copies {
    /// The bytes of `tensors` that lie nowhere in `memory`.
    pub(super) fn of(tensors: &[&[u8]], memory: &[&[u8]]) -> usize {
        let total: usize = tensors.iter().map(|tensor| tensor.len()).sum();
        let kept: usize =
            tensors.iter().flat_map(|tensor| memory.iter().map(|memory| common(tensor, memory))).sum();
        total - kept
    }
}

/// How many bytes two slices share.
fn common(a: &[u8], b: &[u8]) -> usize {
    let (a, b) = (a.as_ptr_range(), b.as_ptr_range());
    let (start, end) = (a.start.max(b.start), a.end.min(b.end));
    end.addr().saturating_sub(start.addr())
}

/// Prints rows.
pub(super) struct Table {
    csv: bool,
}

impl Table {
    pub(super) fn new(csv: bool) -> Self {
        if csv {
            println!("peer,what,payload_bytes,encode_ns,decode_ns,bytes_copied,allocations");
        } else {
            println!(
                "{:12} {:42} {:>9} {:>11} {:>11} {:>9} {:>6}",
                "peer", "what", "payload", "encode ns", "decode ns", "copied", "allocs"
            );
        }
        Self { csv }
    }

    pub(super) fn row(
        &mut self,
        peer: &str,
        what: &str,
        payload: usize,
        encode: Cost,
        decode: Cost,
        copied: usize,
    ) {
        let (encode_ns, decode_ns) = (encode.nanoseconds, decode.nanoseconds);
        let allocations = encode.allocations + decode.allocations;
        if self.csv {
            println!("{peer},{what},{payload},{encode_ns:.1},{decode_ns:.1},{copied},{allocations}");
        } else {
            println!(
                "{peer:12} {what:42} {payload:>9} {encode_ns:>11.1} {decode_ns:>11.1} {copied:>9} {allocations:>6}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted() {
        let memory = [0_u8; 100];
        let other = [0_u8; 10];
        assert_eq!(Copies::of(&[&memory[10..30]], &[&memory]), 0);
        assert_eq!(Copies::of(&[&memory[10..30]], &[&memory[15..20], &memory[25..]]), 10);
        assert_eq!(Copies::of(&[&memory[10..30], &other], &[&memory]), 10);
    }
}
