//! Conflicts on the working vector of one rank.

use super::Step;

/// Every two steps of which one writes what the other reads or writes must be joined by a path of `after`.
pub(super) fn check(steps: &[Step]) -> Result<(), String> {
    // For each step, the earlier ones that are done before it begins.
    let mut before: Vec<Vec<bool>> = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let mut done = vec![false; index];
        for other in step.after.iter().flatten().map(|&other| other as usize) {
            for (done, before) in done.iter_mut().zip(&before[other]) {
                *done |= before;
            }
            done[other] = true;
        }
        for (other, earlier) in steps[..index].iter().enumerate() {
            let overlap = step.range.start.max(earlier.range.start) < step.range.end.min(earlier.range.end);
            if overlap && (step.writes() || earlier.writes()) && !done[other] {
                return Err(format!("steps {other} and {index} conflict: {earlier:?} and {step:?}"));
            }
        }
        before.push(done);
    }
    Ok(())
}
