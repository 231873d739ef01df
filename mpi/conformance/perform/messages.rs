//! Messages between two ranks.

use super::Pair;
use crate::compare::copy;
use crate::value::Value;
use gradwire::Result;
use mpi::traits::*;

impl<T: Value> Pair<'_, T> {
    /// Several messages with tags of their own, received in the order they are sent.
    pub(super) fn messages(&mut self) -> Result<()> {
        let size = self.group.size();
        let (from, to) = (self.root(), self.call.rank(1 + u64::from(self.call.chooses(0)), size));
        for tag in (self.call.tag..).take(self.call.several).filter(|_| from != to) {
            if self.group.rank() == from {
                let process = self.group.theirs.process_at_rank(to as i32);
                if self.call.chooses(4) {
                    self.group.ours.synchronous_send(&self.source, to, tag)?;
                    process.synchronous_send_with_tag(&self.source[..], tag as i32);
                } else {
                    self.group.ours.send(&self.source, to, tag)?;
                    process.send_with_tag(&self.source[..], tag as i32);
                }
            } else if self.group.rank() == to {
                self.receive(from, tag)?;
            }
        }
        Ok(())
    }

    pub(super) fn shift(&mut self) -> Result<()> {
        let (rank, size, tag) = (self.group.rank(), self.group.size(), self.call.tag);
        let distance = self.root();
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        let [mut ours, mut theirs] = [self.nothing(1), self.nothing(1)];
        self.group.ours.send_receive(&self.source, to, tag, &mut ours, from, tag)?;
        mpi::point_to_point::send_receive_into_with_tags(
            &self.source[..],
            &self.group.theirs.process_at_rank(to as i32),
            tag as i32,
            &mut theirs[..],
            &self.group.theirs.process_at_rank(from as i32),
            tag as i32,
        );
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    fn receive(&mut self, from: usize, tag: u32) -> Result<Vec<T>> {
        let [mut ours, mut theirs] = [self.nothing(1), self.nothing(1)];
        let source = if self.call.chooses(1) { gradwire::Source::Any } else { gradwire::Source::Rank(from) };
        let received = self.group.ours.recv(&mut ours, source, tag)?;
        let status =
            self.group.theirs.process_at_rank(from as i32).receive_into_with_tag(&mut theirs[..], tag as i32);
        let count = status.count(T::equivalent_datatype());
        if (received.source as i32, received.count as i32) != (status.source_rank(), count) {
            self.comparison.differs(format!(
                "received {received:?} here and {count} values of {} in MPI",
                status.source_rank()
            ));
        }
        self.comparison.moved(&ours, &theirs);
        Ok(theirs)
    }

    pub(super) fn chain(&mut self) -> Result<()> {
        let (rank, size) = (self.group.rank(), self.group.size());
        let mut values = copy(&self.source);
        if rank > 0 {
            values = self.receive(rank - 1, self.call.tag)?;
        }
        if rank + 1 < size {
            self.group.ours.send(&values, rank + 1, self.call.tag)?;
            self.group
                .theirs
                .process_at_rank(rank as i32 + 1)
                .send_with_tag(&values[..], self.call.tag as i32);
        }
        Ok(())
    }
}
