//! What a plan is made for.

use crate::Rank;
use crate::partition::partition_aligned;
use std::fmt;
use std::ops::Range;

/// A cache line: what two ranks should not both write to.
const LINE: usize = 64;

/// The collectives that are carried by plans.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Collective {
    AllReduce,
    Broadcast,
    AllGather,
    ReduceScatter,
    Reduce,
    Gather,
}

impl Collective {
    /// Every collective.
    pub(crate) const ALL: [Self; 6] =
        [Self::AllReduce, Self::Broadcast, Self::AllGather, Self::ReduceScatter, Self::Reduce, Self::Gather];

    /// As in `GRADWIRE_TUNE`: `all_reduce`, ...
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::Broadcast => "broadcast",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
        }
    }

    /// Whether contributions are combined, not only moved.
    pub(crate) const fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much may change before the bits of a result do. Each level includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Determinism {
    /// All ranks end with the same bits.
    #[default]
    Ranks,
    /// A second run gives the same bits: the algorithm is chosen by nominal links, never by measured ones.
    Runs,
    /// The same bits whatever the algorithm, the bucketing and the segmenting: every element is folded from the
    /// left in rank order.
    Algorithms,
    /// The same bits for the same multiset of contributions, however spread over ranks. That is a property of the
    /// operation's accumulator; plans treat it as [`Algorithms`](Self::Algorithms).
    Contributions,
}

/// What a plan is made for. Equal on all ranks of a call; the key under which plans are cached.
///
/// All ranges of a plan are elements of the *working vector*, the same index space on every rank:
///
/// | collective | `count` | working vector | holds at the start | holds at the end |
/// | --- | --- | --- | --- | --- |
/// | all_reduce | whole vector | `count` | everywhere all of it | everywhere the result |
/// | reduce | whole vector | `count` | everywhere all of it | at the root the result |
/// | broadcast | whole vector | `count` | at the root all of it | everywhere the root's |
/// | all_gather | per rank | `ranks * count` | block `r` on rank `r` | everywhere all blocks |
/// | gather | per rank | `ranks * count` | block `r` on rank `r` | at the root all blocks |
/// | reduce_scatter | per rank | `ranks * count` | everywhere all of it | block `r` of the result on rank `r` |
///
/// What a rank neither holds at the start nor at the end need not exist in memory as long as no step names
/// it. See [`Plan::preserves_input`](super::Plan::preserves_input) for what else may be overwritten.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    /// What is called.
    pub collective: Collective,
    /// How many ranks take part; at least 1.
    pub ranks: usize,
    /// Elements, of the whole vector or per rank: see the table.
    pub count: usize,
    /// Bytes of one element; at least 1.
    pub element_size: usize,
    /// The root of broadcast, reduce and gather, below `ranks`; 0 for the others.
    pub root: Rank,
    /// The operation is commutative. `true` where nothing is reduced.
    pub commutative: bool,
    /// A partial result may be written as elements and folded again as if it were a contribution. `false` where that
    /// loses bits (bf16 sums in f32) or is wrong (a pre-multiplied sum would multiply twice): then all
    /// contributions to an element meet in one fold. `true` where nothing is reduced.
    pub exact_partials: bool,
    /// What the communicator promises.
    pub determinism: Determinism,
}

impl Shape {
    /// Elements of the working vector.
    pub(crate) fn len(&self) -> usize {
        match self.collective {
            Collective::AllReduce | Collective::Broadcast | Collective::Reduce => self.count,
            // Never saturates where the vector exists in memory.
            Collective::AllGather | Collective::ReduceScatter | Collective::Gather => {
                self.count.saturating_mul(self.ranks)
            }
        }
    }

    /// Bytes of the working vector: what costs are computed from and `GRADWIRE_TUNE` compares with.
    pub(crate) fn bytes(&self) -> usize {
        self.len().saturating_mul(self.element_size)
    }

    /// A range of elements, in bytes.
    pub(crate) fn byte_range(&self, elements: &Range<usize>) -> Range<usize> {
        elements.start * self.element_size..elements.end * self.element_size
    }

    /// The part of the working vector that belongs to a rank. Where `count` is per rank that is its block; otherwise
    /// the parts are balanced, and cut at cache lines where they are long.
    pub(crate) fn block(&self, rank: Rank) -> Range<usize> {
        self.part(self.ranks, rank)
    }

    /// Part `index` of `parts` of the working vector, cut at cache lines where parts are long.
    pub(crate) fn part(&self, parts: usize, index: usize) -> Range<usize> {
        match self.collective {
            Collective::AllReduce | Collective::Broadcast | Collective::Reduce => {
                let unit = if LINE.is_multiple_of(self.element_size) { LINE / self.element_size } else { 1 };
                partition_aligned(self.count, parts, index, unit)
            }
            Collective::AllGather | Collective::ReduceScatter | Collective::Gather => {
                crate::partition::partition(self.len(), parts, index)
            }
        }
    }

    /// The whole working vector.
    pub(crate) fn whole(&self) -> Range<usize> {
        0..self.len()
    }

    /// What the rank holds at the start.
    pub(crate) fn input(&self, rank: Rank) -> Range<usize> {
        match self.collective {
            Collective::AllReduce | Collective::Reduce | Collective::ReduceScatter => self.whole(),
            Collective::Broadcast if rank == self.root => self.whole(),
            Collective::Broadcast => 0..0,
            Collective::AllGather | Collective::Gather => self.block(rank),
        }
    }

    /// What the rank holds at the end.
    pub(crate) fn result(&self, rank: Rank) -> Range<usize> {
        match self.collective {
            Collective::AllReduce | Collective::Broadcast | Collective::AllGather => self.whole(),
            Collective::ReduceScatter => self.block(rank),
            Collective::Reduce | Collective::Gather if rank == self.root => self.whole(),
            Collective::Reduce | Collective::Gather => 0..0,
        }
    }
}
