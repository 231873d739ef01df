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

    pub(super) fn shifts_in_scope(&mut self) -> Result<()> {
        let (rank, size, tag) = (self.group.rank(), self.group.size(), self.call.tag);
        let distance = self.root();
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        let tags = tag..tag + self.call.several as u32;
        let [mut ours, mut theirs] = [0, 1].map(|_| vec![self.nothing(1); self.call.several]);
        let (source, is_synchronous) = (&self.source, self.call.chooses(4));
        self.group.ours.scope(|scope| {
            let sends: Vec<_> = tags
                .clone()
                .map(|tag| match is_synchronous {
                    true => scope.synchronous_send(source, to, tag),
                    false => scope.send(source, to, tag),
                })
                .collect();
            // Those that were sent last are asked for first.
            let receives: Vec<_> = ours
                .iter_mut()
                .zip(tags.clone())
                .rev()
                .map(|(values, tag)| scope.recv(&mut values[..], from, tag))
                .collect();
            receives.into_iter().rev().try_for_each(|request| request.wait().1.map(drop))?;
            sends.into_iter().rev().try_for_each(|request| request.wait().1)
        })??;
        mpi::request::scope(|scope| {
            let [to, from] = [to, from].map(|rank| self.group.theirs.process_at_rank(rank as i32));
            let sends: Vec<_> = tags
                .clone()
                .map(|tag| match is_synchronous {
                    true => to.immediate_synchronous_send_with_tag(scope, &source[..], tag as i32),
                    false => to.immediate_send_with_tag(scope, &source[..], tag as i32),
                })
                .collect();
            let receives: Vec<_> = theirs
                .iter_mut()
                .zip(tags.clone())
                .rev()
                .map(|(values, tag)| from.immediate_receive_into_with_tag(scope, &mut values[..], tag as i32))
                .collect();
            receives.into_iter().rev().for_each(mpi::request::Request::wait_without_status);
            sends.into_iter().rev().for_each(mpi::request::Request::wait_without_status);
        });
        ours.iter().zip(&theirs).for_each(|(ours, theirs)| self.comparison.moved(ours, theirs));
        Ok(())
    }

    /// As many values from each rank as that has drawn; the receiver does not know how many.
    pub(super) fn probed(&mut self) -> Result<()> {
        let (rank, size, root, tag) = (self.group.rank(), self.group.size(), self.root(), self.call.tag);
        let drawn = |rank: usize| {
            let draw = self.call.random(self.group.members[rank] + 0x20_000).usize(..=self.call.count);
            // So that it does not depend on who comes first which message is which.
            draw * size + rank
        };
        if rank != root {
            let values = self.some(drawn(rank));
            self.group.ours.send(&values, root, tag)?;
            self.group.theirs.process_at_rank(root as i32).send_with_tag(&values[..], tag as i32);
            return Ok(());
        }
        for from in (0..size).filter(|from| *from != root) {
            let ours = if self.call.chooses(3) {
                let seen = self.group.ours.probe::<T>(from, tag)?;
                let mut ours = self.some(seen.count);
                let received = self.group.ours.recv(&mut ours, from, tag)?;
                if seen != received {
                    self.comparison.differs(format!("saw {seen:?} and received {received:?}"));
                }
                ours
            } else {
                let message = self.group.ours.matched_probe(from, tag)?;
                let mut ours = self.some(message.count::<T>()?);
                message.recv(&mut ours)?;
                ours
            };
            let process = self.group.theirs.process_at_rank(from as i32);
            let (message, status) = process.matched_probe_with_tag(tag as i32);
            let mut theirs = self.some(status.count(T::equivalent_datatype()) as usize);
            message.matched_receive_into(&mut theirs[..]);
            self.comparison.moved(&ours, &theirs);
        }
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
