//! Makes one call on both sides and compares what came out.

mod messages;
mod moves;
mod reduces;
mod varying;
mod windows;

use crate::call::{Call, Kind, Type};
use crate::compare::{Comparison, values};
use crate::group::Group;
use crate::reducing::{How, Reducing};
use crate::value::Value;
use gradwire::Result;

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
                mpi::traits::CommunicatorCollectives::barrier(&self.group.theirs);
                Ok(())
            }
            Kind::Broadcast => self.broadcast(),
            Kind::AllReduce | Kind::AllReduceInto | Kind::AllReduceShared => self.all_reduce(),
            Kind::AllReducesInScope | Kind::AllReducesOwned => self.all_reduces(),
            Kind::MovesInScope => self.moves_in_scope(),
            Kind::Reduce => self.reduce(),
            Kind::Gather => self.gather(),
            Kind::AllGather => self.all_gather(),
            Kind::ReduceScatter => self.reduce_scatter(),
            Kind::Scatter => self.scatter(),
            Kind::AllToAll => self.all_to_all(),
            Kind::Scan => self.scan(),
            Kind::ExclusiveScan => self.exclusive_scan(),
            Kind::GatherVarying => self.gather_varying(),
            Kind::ScatterVarying => self.scatter_varying(),
            Kind::AllGatherVarying => self.all_gather_varying(),
            Kind::AllToAllVarying => self.all_to_all_varying(),
            Kind::Messages => self.messages(),
            Kind::Chain => self.chain(),
            Kind::Shift => self.shift(),
            Kind::ShiftsInScope => self.shifts_in_scope(),
            Kind::Probed => self.probed(),
            Kind::Window => self.window(),
            Kind::LockedWindow => self.locked_window(),
            Kind::Split => Ok(()),
        }
    }

    fn root(&self) -> usize {
        self.call.rank(0, self.group.size())
    }

    /// Memory for results, the same on both sides and unlike any result.
    fn nothing(&self, blocks: usize) -> Vec<T> {
        self.nth(99, self.call.count * blocks)
    }

    /// Values that go somewhere, a block for each rank.
    fn blocks(&self, blocks: usize) -> Vec<T> {
        self.nth(0, self.call.count * blocks)
    }

    /// So many values of this rank, or memory for results.
    fn some(&self, count: usize) -> Vec<T> {
        self.nth(50, count)
    }

    fn nth(&self, nth: usize, count: usize) -> Vec<T> {
        values(self.call, self.group.members[self.group.rank()], nth, count)
    }

    fn reduce_ours(&self, how: How<'_, T>) -> Result<()> {
        T::reduce(self.call.operation, Reducing { communicator: &self.group.ours, how })
    }

    fn theirs(&self) -> mpi::collective::SystemOperation {
        if self.call.is_float() { self.call.operation.of_floats() } else { self.call.operation }.theirs()
    }
}
