//! The calls that ranks make together.

use crate::UnknownCode;

/// A call that ranks make together. The codes are part of the wire format and never change meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum Collective {
    Barrier = 1,
    Broadcast = 2,
    AllReduce = 3,
    AllGather = 4,
    ReduceScatter = 5,
    Reduce = 6,
    Gather = 7,
    AllReduceGradient = 8,
    BroadcastGradient = 9,
    Split = 10,
    Duplicate = 11,
    /// Not a collective, but sender and receiver have to agree on it in the same way.
    PointToPoint = 12,
    Scatter = 13,
    AllToAll = 14,
    Scan = 15,
    ExclusiveScan = 16,
    NeighbourExchange = 17,
    SparseAllReduce = 18,
    CreateWindow = 19,
    WindowFence = 20,
    CreateGroup = 21,
    SplitByHost = 22,
    ReduceGradient = 23,
    StartAllReduceGradient = 24,
    StartReduceGradient = 25,
    StartBroadcastGradient = 26,
}

impl Collective {
    /// All of them, by code.
    pub const ALL: [Self; 26] = [
        Self::Barrier,
        Self::Broadcast,
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Reduce,
        Self::Gather,
        Self::AllReduceGradient,
        Self::BroadcastGradient,
        Self::Split,
        Self::Duplicate,
        Self::PointToPoint,
        Self::Scatter,
        Self::AllToAll,
        Self::Scan,
        Self::ExclusiveScan,
        Self::NeighbourExchange,
        Self::SparseAllReduce,
        Self::CreateWindow,
        Self::WindowFence,
        Self::CreateGroup,
        Self::SplitByHost,
        Self::ReduceGradient,
        Self::StartAllReduceGradient,
        Self::StartReduceGradient,
        Self::StartBroadcastGradient,
    ];

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The collective of a code.
    ///
    /// # Errors
    ///
    /// [`UnknownCode`] for every code not listed above.
    pub const fn from_code(code: u8) -> Result<Self, UnknownCode> {
        if code >= 1 && code as usize <= Self::ALL.len() {
            Ok(Self::ALL[code as usize - 1])
        } else {
            Err(UnknownCode { field: "collective", value: code as u64 })
        }
    }

    /// The method that makes the call.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::AllReduceGradient => "all_reduce_gradient",
            Self::BroadcastGradient => "broadcast_gradient",
            Self::Split => "split",
            Self::Duplicate => "duplicate",
            Self::PointToPoint => "send/recv",
            Self::Scatter => "scatter",
            Self::AllToAll => "all_to_all",
            Self::Scan => "scan",
            Self::ExclusiveScan => "exclusive_scan",
            Self::NeighbourExchange => "neighbour_exchange",
            Self::SparseAllReduce => "sparse_all_reduce",
            Self::CreateWindow => "create_window",
            Self::WindowFence => "fence",
            Self::CreateGroup => "create",
            Self::SplitByHost => "split_by_host",
            Self::ReduceGradient => "reduce_gradient",
            Self::StartAllReduceGradient => "start_all_reduce_gradient",
            Self::StartReduceGradient => "start_reduce_gradient",
            Self::StartBroadcastGradient => "start_broadcast_gradient",
        }
    }
}
