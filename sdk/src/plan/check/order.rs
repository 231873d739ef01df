//! Conflicts on the working vector of one rank.

use super::{Action, Step};
use std::ops::Range;

/// Every two steps of which one writes what the other reads or writes must be joined by a path of `after`.
pub(super) fn check(steps: &[Step]) -> Result<(), String> {
    for (index, step) in steps.iter().enumerate() {
        for (other, earlier) in steps[..index].iter().enumerate() {
            if conflict(step, earlier) && !waits_for(steps, index, other) {
                return Err(format!("steps {other} and {index} conflict: {earlier:?} and {step:?}"));
            }
        }
    }
    Ok(())
}

/// Whether one of two steps writes what the other reads or writes.
fn conflict(step: &Step, other: &Step) -> bool {
    let touches = |writer: &Step, other: &Step| {
        let written = writer.range.clone();
        writer.writes() && (overlap(&written, &other.range) || overlap(&written, &source(other)))
    };
    touches(step, other) || touches(other, step)
}

/// What a step reads outside of its range.
fn source(step: &Step) -> Range<usize> {
    match step.action {
        Action::Copy { from } => from..from + step.range.len(),
        _ => 0..0,
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

/// Whether a step waits for an earlier one, directly or through others.
fn waits_for(steps: &[Step], index: usize, earlier: usize) -> bool {
    let mut after = steps[index].after.iter().flatten().map(|&other| other as usize);
    after.any(|other| other == earlier || (other > earlier && waits_for(steps, other, earlier)))
}
