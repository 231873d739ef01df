//! What a plan is made for.

use super::Blocks;
use crate::Rank;
use crate::partition::partition_aligned;
use std::fmt;
use std::num::NonZeroU64;
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
    Scatter,
    AllToAll,
    Scan,
    ExclusiveScan,
}

impl Collective {
    /// Every collective.
    pub(crate) const ALL: [Self; 10] = [
        Self::AllReduce,
        Self::Broadcast,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::AllToAll,
        Self::Scan,
        Self::ExclusiveScan,
    ];

    /// As in `GRADWIRE_TUNE`: `all_reduce`, ...
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::Broadcast => "broadcast",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllToAll => "all_to_all",
            Self::Scan => "scan",
            Self::ExclusiveScan => "exclusive_scan",
        }
    }

    /// Whether contributions are combined, not only moved.
    pub(crate) const fn reduces(self) -> bool {
        matches!(
            self,
            Self::AllReduce | Self::ReduceScatter | Self::Reduce | Self::Scan | Self::ExclusiveScan
        )
    }

    /// Whether the length of each rank's block is given, not that of the whole vector.
    pub(crate) const fn has_blocks(self) -> bool {
        matches!(self, Self::AllGather | Self::ReduceScatter | Self::Gather | Self::Scatter | Self::AllToAll)
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
    /// The same bits for the same contributions, however many ranks they are spread over, and in whatever order. That is
    /// a property of the operation: of all on integers, of extremes, and of `ReproducibleSum` and `ReproducibleAverage`.
    /// Others are refused.
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
/// | scatter | per rank | `ranks * count` | at the root all blocks | block `r` on rank `r` |
/// | reduce_scatter | per rank | `ranks * count` | everywhere all of it | block `r` of the result on rank `r` |
/// | scan | whole vector | `count` | everywhere all of it | on rank `r` the result of the ranks `0..=r` |
/// | exclusive_scan | whole vector | `count` | everywhere all of it | on rank `r > 0` the result of the ranks `0..r` |
/// | all_to_all | per pair | `2 * ranks * count` | the first half | the second half |
///
/// With [`blocks`](Self::blocks) the blocks have lengths of their own instead of `count`.
///
/// In all_to_all the index space is each rank's own: first its blocks for the ranks, then the blocks of the ranks for it
/// ([`outgoing`](Self::outgoing) and [`incoming`](Self::incoming)).
///
/// What a rank neither holds at the start nor at the end need not exist in memory as long as no step names
/// it. See [`Plan::preserves_input`](super::Plan::preserves_input) for what else may be overwritten.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    /// What is called.
    pub collective: Collective,
    /// How many ranks take part; at least 1.
    pub ranks: usize,
    /// Elements, of the whole vector or per rank: see the table. 0 where there are `blocks`.
    pub count: usize,
    /// Blocks of unequal lengths, in collectives that [have blocks](Collective::has_blocks).
    pub blocks: Option<Blocks>,
    /// Bytes of one element; at least 1.
    pub element_size: usize,
    /// The root of broadcast, reduce, gather and scatter, below `ranks`; 0 for the others.
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
    /// Elements of the longest working vector of any rank. Only in all_to_all they differ.
    pub(crate) fn len(&self) -> usize {
        match (self.collective, &self.blocks) {
            (Collective::AllToAll, Some(_)) => {
                (0..self.ranks).map(|rank| self.len_of(rank)).max().unwrap_or(0)
            }
            _ => self.len_of(0),
        }
    }

    /// Elements of the working vector of a rank. Never saturates where the vector exists in memory.
    pub(crate) fn len_of(&self, rank: Rank) -> usize {
        match (self.collective, &self.blocks) {
            (Collective::AllToAll, None) => self.count.saturating_mul(self.ranks).saturating_mul(2),
            (Collective::AllToAll, Some(blocks)) => {
                blocks.total(rank).saturating_add(blocks.total(self.ranks + rank))
            }
            (_, Some(blocks)) => blocks.total(0),
            (collective, None) if collective.has_blocks() => self.count.saturating_mul(self.ranks),
            (_, None) => self.count,
        }
    }

    /// Bytes of the working vector: what costs are computed from and `GRADWIRE_TUNE` compares with.
    pub(crate) fn bytes(&self) -> usize {
        self.len().saturating_mul(self.element_size)
    }

    /// Bytes of the longest block.
    pub(crate) fn longest_block(&self) -> usize {
        let longest = match &self.blocks {
            Some(blocks) => blocks.longest(),
            None if self.collective.has_blocks() => self.count,
            None => self.count.div_ceil(self.ranks),
        };
        longest.saturating_mul(self.element_size)
    }

    /// A range of elements, in bytes.
    pub(crate) fn byte_range(&self, elements: &Range<usize>) -> Range<usize> {
        elements.start * self.element_size..elements.end * self.element_size
    }

    /// The part of the working vector that belongs to a rank. Where `count` is per rank that is its block; otherwise
    /// the parts are balanced, and cut at cache lines where they are long. All_to_all has
    /// [`outgoing`](Self::outgoing) and [`incoming`](Self::incoming) blocks instead.
    pub(crate) fn block(&self, rank: Rank) -> Range<usize> {
        match &self.blocks {
            Some(blocks) => blocks.range(0, rank),
            None => self.part(self.ranks, rank),
        }
    }

    /// The blocks from one rank up to another.
    pub(super) fn blocks_of(&self, ranks: Range<Rank>) -> Range<usize> {
        self.block(ranks.start).start..self.block(ranks.end - 1).end
    }

    /// Part `index` of `parts` of the working vector, cut at cache lines where parts are long.
    pub(crate) fn part(&self, parts: usize, index: usize) -> Range<usize> {
        if self.collective.has_blocks() {
            return crate::partition::partition(self.len(), parts, index);
        }
        let unit = if LINE.is_multiple_of(self.element_size) { LINE / self.element_size } else { 1 };
        partition_aligned(self.count, parts, index, unit)
    }

    /// In all_to_all: where a rank has its block for another.
    pub(crate) fn outgoing(&self, rank: Rank, to: Rank) -> Range<usize> {
        match &self.blocks {
            Some(blocks) => blocks.range(rank, to),
            None => to * self.count..(to + 1) * self.count,
        }
    }

    /// In all_to_all: where a rank puts the block of another.
    pub(crate) fn incoming(&self, rank: Rank, from: Rank) -> Range<usize> {
        let block = match &self.blocks {
            Some(blocks) => blocks.range(self.ranks + rank, from),
            None => from * self.count..(from + 1) * self.count,
        };
        let start = self.input(rank).end;
        start + block.start..start + block.end
    }

    /// The whole working vector.
    pub(crate) fn whole(&self) -> Range<usize> {
        0..self.len()
    }

    /// What the rank holds at the start.
    pub(crate) fn input(&self, rank: Rank) -> Range<usize> {
        match self.collective {
            Collective::AllReduce
            | Collective::Reduce
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::ExclusiveScan => self.whole(),
            Collective::Broadcast | Collective::Scatter if rank == self.root => self.whole(),
            Collective::Broadcast | Collective::Scatter => 0..0,
            Collective::AllGather | Collective::Gather => self.block(rank),
            Collective::AllToAll => {
                0..match &self.blocks {
                    Some(blocks) => blocks.total(rank),
                    None => self.count.saturating_mul(self.ranks),
                }
            }
        }
    }

    /// What the rank holds at the end.
    pub(crate) fn result(&self, rank: Rank) -> Range<usize> {
        match self.collective {
            Collective::AllReduce | Collective::Broadcast | Collective::AllGather | Collective::Scan => {
                self.whole()
            }
            Collective::ReduceScatter | Collective::Scatter => self.block(rank),
            Collective::Reduce | Collective::Gather if rank == self.root => self.whole(),
            Collective::Reduce | Collective::Gather => 0..0,
            Collective::ExclusiveScan if rank > 0 => self.whole(),
            Collective::ExclusiveScan => 0..0,
            Collective::AllToAll => self.input(rank).end..self.len_of(rank),
        }
    }

    /// How many contributions the result of a rank is made of; at least 1.
    pub(crate) fn contributions(&self, rank: Rank) -> NonZeroU64 {
        let contributions = match self.collective {
            Collective::Scan => rank + 1,
            Collective::ExclusiveScan => rank,
            _ => self.ranks,
        };
        NonZeroU64::new(contributions as u64).unwrap_or(NonZeroU64::MIN)
    }
}
