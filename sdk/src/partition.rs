//! Cutting a vector into one part per rank. Every plan and every executor cuts here and nowhere else.
#![forbid(unsafe_code)]

use std::ops::Range;

/// Part `index` of `count` elements in `parts` parts: the first `count % parts` parts have one element more than
/// the others. With fewer elements than parts the last parts are empty.
///
/// The parts cover `0..count` in order without gap or overlap. `index` counts from 0; an index of `parts` or more,
/// and any index of 0 parts, gives the empty range at the end.
pub(crate) fn partition(count: usize, parts: usize, index: usize) -> Range<usize> {
    let (Some(length), Some(longer)) = (count.checked_div(parts), count.checked_rem(parts)) else {
        return count..count;
    };
    if index >= parts {
        return count..count;
    }
    // No overflow: index * length <= parts * length <= count.
    let start = index * length + index.min(longer);
    start..start + length + usize::from(index < longer)
}

/// As [`partition`], with every inner boundary a multiple of `unit` elements, so that two ranks do not write to one
/// cache line. Parts then differ by less than two units. Where a part would hold fewer than 16 units the balance
/// matters more, and the cut is that of [`partition`].
pub(crate) fn partition_aligned(count: usize, parts: usize, index: usize, unit: usize) -> Range<usize> {
    const UNITS_PER_PART: usize = 16;
    let Some(units) = count.checked_div(unit) else {
        return partition(count, parts, index);
    };
    if unit == 1 || units / UNITS_PER_PART < parts {
        return partition(count, parts, index);
    }
    // The elements behind the last whole unit go to the last part.
    let part = partition(units, parts, index);
    let boundary = |at: usize| if at == units { count } else { at * unit };
    boundary(part.start)..boundary(part.end)
}

#[cfg(test)]
mod tests {
    use super::{partition, partition_aligned};
    use proptest::prelude::*;
    use std::ops::Range;

    fn covers(count: usize, parts: impl Iterator<Item = Range<usize>>) -> Result<(), TestCaseError> {
        let mut end = 0;
        for part in parts {
            prop_assert_eq!(part.start, end, "gap or overlap");
            prop_assert!(part.start <= part.end, "backwards");
            end = part.end;
        }
        prop_assert_eq!(end, count);
        Ok(())
    }

    #[test]
    fn five_elements_for_four() {
        let parts: Vec<_> = (0..4).map(|index| partition(5, 4, index)).collect();
        assert_eq!(parts, [0..2, 2..3, 3..4, 4..5]);
    }

    #[test]
    fn nothing_and_too_little() {
        assert_eq!((0..3).map(|index| partition(0, 3, index)).collect::<Vec<_>>(), [0..0, 0..0, 0..0]);
        assert_eq!((0..3).map(|index| partition(2, 3, index)).collect::<Vec<_>>(), [0..1, 1..2, 2..2]);
        assert_eq!(partition(7, 0, 0), 7..7);
        assert_eq!(partition(7, 3, 3), 7..7);
    }

    #[test]
    fn the_largest_count_does_not_overflow() {
        assert_eq!(partition(usize::MAX, 2, 1).end, usize::MAX);
        assert_eq!(partition_aligned(usize::MAX, 3, 2, 16).end, usize::MAX);
    }

    #[test]
    fn boundaries_fall_on_units() {
        let parts: Vec<_> = (0..3).map(|index| partition_aligned(1003, 3, index, 16)).collect();
        assert_eq!(parts, [0..336, 336..672, 672..1003]);
    }

    proptest! {
        #[test]
        fn parts_are_balanced(count in 0_usize..10_000, parts in 1_usize..100) {
            covers(count, (0..parts).map(|index| partition(count, parts, index)))?;
            let lengths = || (0..parts).map(|index| partition(count, parts, index).len());
            prop_assert!(lengths().max().unwrap_or(0) - lengths().min().unwrap_or(0) <= 1);
        }

        #[test]
        fn aligned_parts_are_nearly_balanced(count in 0_usize..100_000, parts in 1_usize..100, unit in 0_usize..65) {
            covers(count, (0..parts).map(|index| partition_aligned(count, parts, index, unit)))?;
            let lengths = || (0..parts).map(|index| partition_aligned(count, parts, index, unit).len());
            let (longest, shortest) = (lengths().max().unwrap_or(0), lengths().min().unwrap_or(0));
            // One unit, and the rest behind the last whole unit.
            prop_assert!(longest - shortest < 2 * unit.max(1));
            if count >= 16 * unit * parts && unit > 0 {
                prop_assert!((1..parts).all(|index| partition_aligned(count, parts, index, unit).start.is_multiple_of(unit)));
            }
        }
    }
}
