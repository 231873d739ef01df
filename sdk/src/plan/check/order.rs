//! Conflicts on the working vector of one rank.

use super::Step;

/// Every two steps of which one writes what the other reads or writes must be joined by a path of `after`.
pub(super) fn check(steps: &[Step]) -> Result<(), String> {
    for (index, step) in steps.iter().enumerate() {
        for (other, earlier) in steps[..index].iter().enumerate() {
            let overlap = step.range.start < earlier.range.end
                && earlier.range.start < step.range.end
                && !step.range.is_empty()
                && !earlier.range.is_empty();
            if overlap && (step.writes() || earlier.writes()) && !waits_for(steps, index, other) {
                return Err(format!("steps {other} and {index} conflict: {earlier:?} and {step:?}"));
            }
        }
    }
    Ok(())
}

/// Whether a step waits for an earlier one, directly or through others.
fn waits_for(steps: &[Step], index: usize, earlier: usize) -> bool {
    let mut after = steps[index].after.iter().flatten().map(|&other| other as usize);
    after.any(|other| other == earlier || (other > earlier && waits_for(steps, other, earlier)))
}
