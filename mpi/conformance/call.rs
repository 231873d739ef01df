//! Random calls: the same on all ranks, since they follow from the seed and the number of the call.

use crate::domain::{Domain, Library};
use crate::operation::Operation;
use fastrand::Rng;
use std::fmt;

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Barrier,
    Broadcast,
    AllReduce,
    AllReduceInto,
    /// In memory that the ranks of a host share.
    AllReduceShared,
    /// Several at once, waited for in any order, another collective meanwhile.
    AllReducesInScope,
    /// Several at once that own their buffers.
    AllReducesOwned,
    Reduce,
    Gather,
    AllGather,
    ReduceScatter,
    /// Different ones at once that borrow their buffers.
    MovesInScope,
    Scatter,
    AllToAll,
    Scan,
    ExclusiveScan,
    GatherVarying,
    ScatterVarying,
    AllGatherVarying,
    AllToAllVarying,
    /// Some messages from one rank to another.
    Messages,
    /// From each rank to the next, as each has received.
    Chain,
    /// From each rank to one some ranks further, all at once.
    Shift,
    /// The same, several at once, the last one waited for first.
    ShiftsInScope,
    /// From all other ranks to one, which looks before it receives.
    Probed,
    /// One-sided calls between two fences.
    Window,
    /// One-sided calls under locks, all at once on the part of one rank.
    LockedWindow,
    /// Makes a communicator that later calls use.
    Split,
}

const KINDS: [Kind; 28] = [
    Kind::Barrier,
    Kind::Broadcast,
    Kind::AllReduce,
    Kind::AllReduceInto,
    Kind::AllReduceShared,
    Kind::AllReducesInScope,
    Kind::AllReducesOwned,
    Kind::Reduce,
    Kind::Gather,
    Kind::AllGather,
    Kind::ReduceScatter,
    Kind::MovesInScope,
    Kind::Scatter,
    Kind::AllToAll,
    Kind::Scan,
    Kind::ExclusiveScan,
    Kind::GatherVarying,
    Kind::ScatterVarying,
    Kind::AllGatherVarying,
    Kind::AllToAllVarying,
    Kind::Messages,
    Kind::Chain,
    Kind::Shift,
    Kind::ShiftsInScope,
    Kind::Probed,
    Kind::Window,
    Kind::LockedWindow,
    Kind::Split,
];

/// What the values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

const TYPES: [Type; 10] = [
    Type::F32,
    Type::F64,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
];

/// One call of all ranks of a communicator.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) datatype: Type,
    pub(crate) operation: Operation,
    pub(crate) domain: Domain,
    pub(crate) count: usize,
    /// How many at once.
    pub(crate) several: usize,
    /// The first of eight tags that no other call uses: a rank may be calls ahead of one that receives from any.
    pub(crate) tag: u32,
    /// Which communicator.
    pub(crate) slot: usize,
    /// Chooses what depends on the size of the communicator.
    choice: u64,
    seed: u64,
}

impl Call {
    pub(crate) fn draw(seed: u64, index: usize, slots: usize, library: Library) -> Self {
        let mut random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index as u64) << 8);
        let kind = KINDS[random.usize(..KINDS.len())];
        let datatype = TYPES[random.usize(..TYPES.len())];
        let operation = Operation::ALL[random.usize(..Operation::ALL.len())];
        Self {
            kind,
            datatype,
            operation,
            domain: Domain::of(library, datatype, operation),
            count: count(&mut random),
            several: random.usize(1..=4),
            tag: (index % 1_000_000) as u32 * 8,
            slot: random.usize(..slots),
            choice: random.u64(..),
            seed: random.u64(..),
        }
    }

    pub(crate) fn is_float(&self) -> bool {
        matches!(self.datatype, Type::F32 | Type::F64)
    }

    /// A rank of `size`, another one for each `which`.
    pub(crate) fn rank(&self, which: u64, size: usize) -> usize {
        ((self.choice % size as u64 + which) % size as u64) as usize
    }

    /// Chooses among a few.
    pub(crate) fn chooses(&self, bit: u32) -> bool {
        self.choice >> (32 + bit) & 1 == 1
    }

    /// What is random about a rank of the world in this call. Any rank can tell that of any other.
    pub(crate) fn random(&self, world_rank: usize) -> Rng {
        Rng::with_seed(self.seed.wrapping_add((world_rank as u64).wrapping_mul(0xd134_2543_de82_ef95)))
    }
}

impl fmt::Debug for Call {
    /// `AllReduce of 12 F32 by Sum in communicator 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, datatype, operation, count, slot, .. } = self;
        write!(f, "{kind:?} of {count} {datatype:?} by {operation:?} in communicator {slot}")
    }
}

/// None, one, few, many, and so many that messages are cut.
fn count(random: &mut Rng) -> usize {
    match random.u8(..8) {
        0 => 0,
        1 => 1,
        2..=4 => random.usize(2..70),
        5 | 6 => random.usize(70..3000),
        _ => random.usize(3000..40_000),
    }
}
