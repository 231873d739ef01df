//! One-sided calls. Each part of a window is a block for each rank, then one block to accumulate on, then two elements for single
//! ones. What happens to each element does not depend on who comes first, but for the order of a reduction.

use super::Pair;
use crate::compare::values;
use crate::reducing::How;
use crate::value::Value;
use crate::window::Theirs;
use gradwire::Result;

/// So much is enough to be cut into several messages; each rank has that many for each rank.
const MOST: usize = 10_000;

impl<T: Value> Pair<'_, T> {
    pub(super) fn window(&mut self) -> Result<()> {
        let (rank, size, root) = (self.group.rank(), self.group.size(), self.root());
        let count = self.call.count.min(MOST);
        let (accumulated, single) = (count * size, count * (size + 1));
        let before = self.some(single + 2);
        let ours = self.group.ours.create_window::<T>(before.len())?;
        ours.store(0, &before)?;
        let mut theirs = Theirs::new(&self.group.theirs, &before);
        self.meet(&ours, &theirs)?;

        // A block to a rank some ranks further.
        let target = (rank + root) % size;
        let source = &self.source[..count];
        ours.put(target, count * rank, source)?;
        theirs.put(target, count * rank, source);
        // All at once on the parts of one rank.
        self.reduce_ours(How::Accumulate(&ours, root, accumulated, source))?;
        theirs.accumulate(root, accumulated, source, &self.theirs());
        // One element of the next rank, which nobody else reaches for.
        let next = (rank + 1) % size;
        let [operand] = self.nth(60, 1)[..] else { unreachable!("one was asked for") };
        let mut fetched = [self.nth(99, 1), self.nth(99, 1)];
        self.reduce_ours(How::FetchAndOp(&ours, next, single, operand, &mut fetched[0]))?;
        theirs.fetch_and_op(next, single, &operand, &self.theirs(), &mut fetched[1]);
        let there = values(self.call, self.group.members[next], 50, single + 2)[single + 1];
        let comparand = if self.call.chooses(2) { there } else { operand };
        let swapped = T::compare_and_swap(&ours, next, single + 1, comparand, operand).transpose()?;
        let mut found = self.nth(99, 1);
        if swapped.is_some() {
            theirs.compare_and_swap(next, single + 1, &comparand, &operand, &mut found);
        }
        self.meet(&ours, &theirs)?;
        self.comparison.moved(&fetched[0], &fetched[1]);
        if let Some(swapped) = swapped {
            self.comparison.moved(&[swapped], &found);
        }

        // Everybody reads what another has, and looks at its own.
        let mut gotten = [self.some(single), self.some(single)];
        ours.get(next, 0, &mut gotten[0][..accumulated])?;
        theirs.get(next, 0, &mut gotten[1][..accumulated]);
        self.meet(&ours, &theirs)?;
        self.comparison.moved(&gotten[0][..accumulated], &gotten[1][..accumulated]);
        let mut local = self.some(single + 2);
        ours.load(0, &mut local)?;
        let memory = theirs.memory();
        self.comparison.moved(&local[..accumulated], &memory[..accumulated]);
        self.comparison.moved(&local[single..], &memory[single..]);
        let (own, other) = (&local[accumulated..single], &memory[accumulated..single]);
        let start = &before[accumulated..single];
        self.comparison.accumulated(self.call, self.group, (rank == root).then_some(start), own, other);
        theirs.free();
        Ok(())
    }

    /// All accesses so far have been carried out, on both sides.
    fn meet(&self, ours: &gradwire::Window<T>, theirs: &Theirs<T>) -> Result<()> {
        ours.fence()?;
        theirs.fence();
        Ok(())
    }
}
