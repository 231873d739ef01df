//! Makes one call on both sides and compares what came out.

use crate::call::{Call, Kind, Type};
use crate::compare::{Comparison, copy, values};
use crate::group::Group;
use crate::reducing::{How, Reducing};
use crate::value::Value;
use gradwire::Result;
use mpi::request::Request;
use mpi::traits::*;

/// Makes a call that all members make; what it makes of its kind is not a communicator.
pub(crate) fn perform(call: &Call, group: &Group, comparison: &mut Comparison) -> Result<()> {
    match call.datatype {
        Type::F32 => Pair::<f32>::new(call, group, comparison).call(),
        Type::F64 => Pair::<f64>::new(call, group, comparison).call(),
        Type::I8 => Pair::<i8>::new(call, group, comparison).call(),
        Type::I16 => Pair::<i16>::new(call, group, comparison).call(),
        Type::I32 => Pair::<i32>::new(call, group, comparison).call(),
        Type::I64 => Pair::<i64>::new(call, group, comparison).call(),
        Type::U8 => Pair::<u8>::new(call, group, comparison).call(),
        Type::U16 => Pair::<u16>::new(call, group, comparison).call(),
        Type::U32 => Pair::<u32>::new(call, group, comparison).call(),
        Type::U64 => Pair::<u64>::new(call, group, comparison).call(),
    }
}

/// Both sides of one call.
struct Pair<'a, T> {
    call: &'a Call,
    group: &'a Group,
    comparison: &'a mut Comparison,
    /// What this rank contributes.
    source: Vec<T>,
}

impl<'a, T: Value> Pair<'a, T> {
    fn new(call: &'a Call, group: &'a Group, comparison: &'a mut Comparison) -> Self {
        let blocks = if call.kind == Kind::ReduceScatter { group.size() } else { 1 };
        let source = values(call, group.members[group.rank()], 0, call.count * blocks);
        Self { call, group, comparison, source }
    }

    fn call(mut self) -> Result<()> {
        match self.call.kind {
            Kind::Barrier => {
                self.group.ours.barrier()?;
                self.group.theirs.barrier();
                Ok(())
            }
            Kind::Broadcast => self.broadcast(),
            Kind::AllReduce | Kind::AllReduceInto | Kind::AllReduceShared => self.all_reduce(),
            Kind::AllReducesInScope | Kind::AllReducesOwned => self.all_reduces(),
            Kind::Reduce => self.reduce(),
            Kind::Gather => self.gather(),
            Kind::AllGather => self.all_gather(),
            Kind::ReduceScatter => self.reduce_scatter(),
            Kind::Messages => self.messages(),
            Kind::Chain => self.chain(),
            Kind::Split => Ok(()),
        }
    }

    fn root(&self) -> usize {
        self.call.rank(0, self.group.size())
    }

    /// Memory for results, the same on both sides and unlike any result.
    fn nothing(&self, blocks: usize) -> Vec<T> {
        values(self.call, self.group.members[self.group.rank()], 99, self.call.count * blocks)
    }

    fn reduce_ours(&self, how: How<'_, T>) -> Result<()> {
        T::reduce(self.call.operation, Reducing { communicator: &self.group.ours, how })
    }

    fn theirs(&self) -> mpi::collective::SystemOperation {
        if self.call.is_float() { self.call.operation.of_floats() } else { self.call.operation }.theirs()
    }

    fn broadcast(&mut self) -> Result<()> {
        let root = self.root();
        let [mut ours, mut theirs] = [copy(&self.source), copy(&self.source)];
        self.group.ours.broadcast(&mut ours, root)?;
        self.group.theirs.process_at_rank(root as i32).broadcast_into(&mut theirs[..]);
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    fn all_reduce(&mut self) -> Result<()> {
        let [mut ours, mut theirs] = [copy(&self.source), self.nothing(1)];
        match self.call.kind {
            Kind::AllReduceInto => {
                ours = self.nothing(1);
                self.reduce_ours(How::Into(&self.source, &mut ours))?;
            }
            Kind::AllReduceShared => self.reduce_ours(How::Shared(&mut ours))?,
            _ => self.reduce_ours(How::InPlace(&mut ours))?,
        }
        self.group.theirs.all_reduce_into(&self.source[..], &mut theirs[..], self.theirs());
        self.comparison.reduced(self.call, self.group, 0, 0, &ours, &theirs);
        Ok(())
    }

    fn all_reduces(&mut self) -> Result<()> {
        let own = self.group.members[self.group.rank()];
        let sources: Vec<Vec<T>> =
            (0..self.call.several).map(|nth| values(self.call, own, nth, self.call.count)).collect();
        let copies = || sources.iter().map(|source| copy(source)).collect::<Vec<_>>();
        let [mut ours, mut theirs] = [copies(), copies()];
        match self.call.kind {
            Kind::AllReducesOwned => self.reduce_ours(How::Owned(&mut ours))?,
            _ => self.reduce_ours(How::Scope(&mut ours))?,
        }
        let operation = self.theirs();
        mpi::request::scope(|scope| {
            let pairs = sources.iter().zip(&mut theirs);
            let requests: Vec<_> = pairs
                .map(|(source, result)| {
                    self.group.theirs.immediate_all_reduce_into(
                        scope,
                        &source[..],
                        &mut result[..],
                        operation,
                    )
                })
                .collect();
            self.group.theirs.barrier();
            requests.into_iter().rev().for_each(Request::wait_without_status);
        });
        for (nth, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            self.comparison.reduced(self.call, self.group, nth, 0, ours, theirs);
        }
        Ok(())
    }

    fn reduce(&mut self) -> Result<()> {
        let root = self.root();
        // Elsewhere nothing changes.
        let [mut ours, mut theirs] = [copy(&self.source), copy(&self.source)];
        self.reduce_ours(How::Root(&mut ours, root))?;
        let process = self.group.theirs.process_at_rank(root as i32);
        if self.group.rank() == root {
            process.reduce_into_root(&self.source[..], &mut theirs[..], self.theirs());
            self.comparison.reduced(self.call, self.group, 0, 0, &ours, &theirs);
        } else {
            process.reduce_into(&self.source[..], self.theirs());
            self.comparison.moved(&ours, &theirs);
        }
        Ok(())
    }

    fn gather(&mut self) -> Result<()> {
        let root = self.root();
        let blocks = if self.group.rank() == root { self.group.size() } else { 0 };
        let [mut ours, mut theirs] = [self.nothing(blocks), self.nothing(blocks)];
        self.group.ours.gather_into(&self.source, &mut ours, root)?;
        let process = self.group.theirs.process_at_rank(root as i32);
        if self.group.rank() == root {
            process.gather_into_root(&self.source[..], &mut theirs[..]);
        } else {
            process.gather_into(&self.source[..]);
        }
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    fn all_gather(&mut self) -> Result<()> {
        let blocks = self.group.size();
        let [mut ours, mut theirs] = [self.nothing(blocks), self.nothing(blocks)];
        self.group.ours.all_gather_into(&self.source, &mut ours)?;
        self.group.theirs.all_gather_into(&self.source[..], &mut theirs[..]);
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    fn reduce_scatter(&mut self) -> Result<()> {
        let [mut ours, mut theirs] = [self.nothing(1), self.nothing(1)];
        self.reduce_ours(How::Scatter(&self.source, &mut ours))?;
        self.group.theirs.reduce_scatter_block_into(&self.source[..], &mut theirs[..], self.theirs());
        let offset = self.group.rank() * self.call.count;
        self.comparison.reduced(self.call, self.group, 0, offset, &ours, &theirs);
        Ok(())
    }

    /// Several messages with tags of their own, received in the order they are sent.
    fn messages(&mut self) -> Result<()> {
        let size = self.group.size();
        let (from, to) = (self.root(), self.call.rank(1 + u64::from(self.call.chooses(0)), size));
        for tag in (0..self.call.several as u32).filter(|_| from != to) {
            if self.group.rank() == from {
                self.group.ours.send(&self.source, to, tag)?;
                self.group.theirs.process_at_rank(to as i32).send_with_tag(&self.source[..], tag as i32);
            } else if self.group.rank() == to {
                self.receive(from, tag)?;
            }
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

    fn chain(&mut self) -> Result<()> {
        let (rank, size) = (self.group.rank(), self.group.size());
        let mut values = copy(&self.source);
        if rank > 0 {
            values = self.receive(rank - 1, 7)?;
        }
        if rank + 1 < size {
            self.group.ours.send(&values, rank + 1, 7)?;
            self.group.theirs.process_at_rank(rank as i32 + 1).send_with_tag(&values[..], 7);
        }
        Ok(())
    }
}
