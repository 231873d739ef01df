//! Results of both sides, side by side.

use crate::call::Call;
use crate::group::Group;
use crate::value::Value;

/// What went into a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contributions {
    /// Which of several contributions.
    pub(crate) nth: usize,
    /// The results begin here.
    pub(crate) offset: usize,
    /// How many ranks contributed, from rank 0 on.
    pub(crate) ranks: usize,
}

/// Looks at the results of one call on this rank.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// Whether to change the next value that Gradwire gives.
    pub(crate) corrupts: bool,
    /// The first difference, in words.
    pub(crate) difference: Option<String>,
}

impl Comparison {
    /// The results of a call that only moves values.
    pub(crate) fn moved<T: Value>(&mut self, ours: &[T], theirs: &[T]) {
        self.within(ours, theirs, |_| 0.0);
    }

    /// The results of a call that reduces what members have drawn.
    pub(crate) fn reduced<T: Value>(
        &mut self,
        call: &Call,
        group: &Group,
        Contributions { nth, offset, ranks }: Contributions,
        ours: &[T],
        theirs: &[T],
    ) {
        let members = group.members.iter().take(ranks);
        let contributions: Vec<Vec<T>> =
            members.map(|member| values(call, *member, nth, offset + ours.len())).collect();
        let mut theirs = theirs.to_vec();
        if ranks == 1 && call.operation.is_logical() && !call.is_float() {
            // MPI copies an only contribution, whatever the operation.
            theirs.iter_mut().for_each(|value| *value = value.truth());
        }
        self.within(ours, &theirs, |index| {
            let column: Vec<T> = contributions.iter().map(|values| values[offset + index]).collect();
            T::tolerance(call.operation, &column)
        });
    }

    /// A block of a window on which all members have accumulated what they drew, where that block was `start`; `None`: nobody has.
    pub(crate) fn accumulated<T: Value>(
        &mut self,
        call: &Call,
        group: &Group,
        start: Option<&[T]>,
        ours: &[T],
        theirs: &[T],
    ) {
        let Some(start) = start else { return self.moved(ours, theirs) };
        let mut contributions: Vec<Vec<T>> =
            group.members.iter().map(|member| values(call, *member, 0, call.count)).collect();
        contributions.push(copy(start));
        self.within(ours, theirs, |index| {
            let column: Vec<T> = contributions.iter().map(|values| values[index]).collect();
            T::tolerance(call.operation, &column)
        });
    }

    fn within<T: Value>(&mut self, ours: &[T], theirs: &[T], tolerance: impl Fn(usize) -> f64) {
        let mut ours = ours.to_vec();
        if let Some(first) = ours.first_mut().filter(|_| self.corrupts) {
            *first = first.corrupted();
            self.corrupts = false;
        }
        if ours.len() != theirs.len() {
            self.differs(format!("{} values instead of {}", ours.len(), theirs.len()));
        }
        for (index, (own, their)) in ours.iter().zip(theirs).enumerate() {
            // NaN is within nothing.
            let is_within = own.distance(*their) <= tolerance(index);
            if !is_within {
                return self.differs(format!("value {index} is {own:?} here and {their:?} in MPI"));
            }
        }
    }

    pub(crate) fn differs(&mut self, difference: String) {
        self.difference.get_or_insert(difference);
    }
}

/// The values a rank of the world contributes; the `nth` of several contributions.
pub(crate) fn values<T: Value>(call: &Call, member: usize, nth: usize, count: usize) -> Vec<T> {
    let mut random = call.random(member + 0x10_000 * nth);
    let mut values = room(count);
    values.extend((0..count).map(|_| T::draw(&mut random, call.domain)));
    values
}

/// A copy that has an address of its own even if it is empty.
pub(crate) fn copy<T: Value>(values: &[T]) -> Vec<T> {
    let mut copy = room(values.len());
    copy.extend_from_slice(values);
    copy
}

/// Empty slices may begin at addresses that MPI takes for something else, such as MPI_IN_PLACE, which is 1 in Open MPI.
fn room<T>(count: usize) -> Vec<T> {
    Vec::with_capacity(count.max(1))
}
