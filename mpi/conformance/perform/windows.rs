//! One-sided calls. Each part of a window is a block for each rank, then one block to accumulate on, then two elements for single
//! ones. What happens to each element does not depend on who comes first, but for the order of a reduction.

use super::Pair;
use crate::compare::values;
use crate::reducing::How;
use crate::value::Value;
use crate::window::Theirs;
use gradwire::Result;
use gradwire::window::Lock;
use mpi::traits::CommunicatorCollectives;

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

    /// Each rank writes the same block under a lock, reads it back while it holds the lock, and then accumulates on another one
    /// under a lock that all share.
    pub(super) fn locked_window(&mut self) -> Result<()> {
        let (rank, root, count) = (self.group.rank(), self.root(), self.call.count.min(MOST));
        // One more: MPICH has no memory for a window without.
        let before = self.some(2 * count + 1);
        let ours = self.group.ours.create_window::<T>(before.len())?;
        ours.store(0, &before)?;
        let mut theirs = Theirs::new(&self.group.theirs, &before);
        // MPI shows what was stored, and finds what others have put, where a lock ends or begins.
        let show = |theirs: &Theirs<T>| {
            theirs.lock(rank);
            theirs.unlock(rank);
        };
        show(&theirs);
        self.pass_barriers()?;

        let source = &self.source[..count];
        let (mut here, mut there) = (self.some(count), self.some(count));
        let lock = ours.lock(root, Lock::Exclusive)?;
        ours.put(root, 0, source)?;
        ours.get(root, 0, &mut here)?;
        lock.unlock()?;
        theirs.lock(root);
        theirs.put(root, 0, source);
        theirs.flush(root);
        theirs.get(root, 0, &mut there);
        theirs.unlock(root);
        self.comparison.moved(&here, &there);
        self.comparison.moved(&here, source);

        let lock = ours.lock_all()?;
        self.reduce_ours(How::Accumulate(&ours, root, count, source))?;
        lock.unlock()?;
        theirs.lock_all();
        theirs.accumulate(root, count, source, &self.theirs());
        theirs.unlock_all();
        self.pass_barriers()?;
        show(&theirs);
        let mut local = self.some(before.len());
        ours.load(0, &mut local)?;
        let (start, accumulated) = (&before[count..2 * count], theirs.memory());
        let (own, other) = (&local[count..2 * count], &accumulated[count..2 * count]);
        self.comparison.accumulated(self.call, self.group, (rank == root).then_some(start), own, other);
        self.pass_barriers()?;
        theirs.free();
        Ok(())
    }

    /// MPI's first: others may be in its calls still, and MPICH serves them only while this rank is in one, too.
    fn pass_barriers(&self) -> Result<()> {
        self.group.theirs.barrier();
        self.group.ours.barrier()
    }

    /// All accesses so far have been carried out, on both sides.
    fn meet(&self, ours: &gradwire::Window<T>, theirs: &Theirs<T>) -> Result<()> {
        ours.fence()?;
        theirs.fence();
        Ok(())
    }
}
