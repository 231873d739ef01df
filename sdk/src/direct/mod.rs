//! The executor for a group of ranks that shares memory wholly.
//!
//! It runs on the caller's thread, against the peers' mapped memory, with no engine, no event, no allocation and no
//! system call while data flows. Each rank has a *board* that all others map. A collective begins with an
//! *exchange*: each rank publishes a line with the hash of its signature and waits for everybody else's. Once they
//! agree, and not before, memory of the caller is written:
//!
//! - up to 112 bytes lie in the lines themselves;
//! - memory that all ranks share is folded where it lies, each rank doing its part for all (*push*), or copied from
//!   there;
//! - long private memory is read by the system, where that was found to be allowed and faster (*attached*);
//! - other memory is *staged* in rounds through slots of the boards; the first round is staged before the exchange.
//!
//! Every rank folds contributions in rank order, so all get the same bits whatever the path.
//!
//! `README.md` beside this file proves the ordering. What the executor needs from the process around it, waiting
//! above all, it asks of an [`Environment`].

mod all_reduce;
mod attach;
mod board;
mod choice;
mod condition;
mod copies;
mod exchange;
mod host;
mod imports;
mod reduces;
mod rounds;
mod scans;
mod scatters;
mod shown;
#[cfg(all(test, feature = "shm"))]
mod tests;
mod window;

pub(crate) use attach::{SystemProcess, read};
pub(crate) use board::BOARD_LEN;
pub(crate) use condition::Condition;
pub(crate) use host::{Call, Membership, Operands};
pub(crate) use window::{Part, View};

use crate::Rank;
use crate::buffer::{Reducer, Span};
use attach::Attached;
use board::{Board, Boards};
use choice::Choices;
use gradwire_schema::CallSignature;
use gradwire_transport::{Allocation, Direct, RegionKey, RemoteRegion};
use imports::Imports;
use shown::Shown;

/// What the executor asks of the process around it.
pub(crate) trait Environment {
    /// Why waiting ended early: a deadline, a lost rank.
    type Error;

    /// Returns once the condition [is ready](Condition::is_ready), or where it [begins](Condition::begins) a call that
    /// somebody makes elsewhere. Drives transports meanwhile, yields, and sleeps between [`Condition::park`] and
    /// [`Condition::unpark`]; the bell rings for whoever is parked.
    ///
    /// # Errors
    ///
    /// Its own. The group is of no use afterwards; [`Condition::missing`] says whom to blame.
    fn wait(&mut self, condition: &Condition<'_>) -> Result<Waited, Self::Error>;

    /// Rings the bell of a rank that sleeps.
    fn wake(&mut self, rank: Rank);

    /// Maps the memory behind a rank's key.
    ///
    /// # Errors
    ///
    /// Its own: there is no other path once all ranks have said that their memory is shared.
    fn import(&mut self, rank: Rank, key: &RegionKey) -> Result<(RemoteRegion, Direct), Self::Error>;

    /// Gives back what was imported.
    fn release(&mut self, rank: Rank, region: RemoteRegion);
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    Ready,
    /// A rank makes the call that is about to begin by another way: nobody will meet it here.
    Elsewhere,
}

/// Why a collective failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure<E> {
    /// A rank makes the call by another way. Nothing has happened here; no memory of the caller was touched, and the
    /// group may be used again.
    Elsewhere,
    /// The ranks called different things: here is what, by rank; `None` where it is of another version. No memory
    /// of the caller was touched, and the group may be used again.
    Mismatch(Vec<Option<CallSignature>>),
    /// A rank wrote what no correct rank writes. The group must not be used again.
    Corrupt(Rank, &'static str),
    /// What the environment said. The group must not be used again.
    Environment(E),
}

impl<E> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Environment(error)
    }
}

/// Memory of the caller, and how peers reach it where they can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) span: Span,
    pub(crate) share: Option<Share>,
}

/// Where memory lies in a region that peers map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) key: RegionKey,
    /// First byte inside the region.
    pub(crate) offset: usize,
}

/// Where the blocks of the ranks lie in a vector.
pub(crate) struct Places<'a> {
    /// The bytes of a rank.
    pub(crate) block: &'a dyn Fn(Rank) -> std::ops::Range<usize>,
    /// Bytes of the longest block.
    pub(crate) longest: usize,
}

/// Where the blocks lie that ranks have for each other.
pub(crate) struct Pairs<'a> {
    /// The bytes that one rank has for another, in its source.
    pub(crate) sent: &'a dyn Fn(Rank, Rank) -> std::ops::Range<usize>,
    /// Where those of a rank for this one go, in the destination.
    pub(crate) received: &'a dyn Fn(Rank) -> std::ops::Range<usize>,
    /// Bytes of the longest block of any two.
    pub(crate) longest: usize,
}

/// A reduction and the size of its elements in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold<'a> {
    pub(crate) reducer: &'a Reducer,
    pub(crate) element_size: usize,
}

/// How a rank waits before it turns to its environment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    /// It has a core of its own: some microseconds.
    Spin,
    /// Ranks share cores: not at all.
    Yield,
}

/// Ranks that map each other's boards.
#[derive(Debug)]
pub(crate) struct Group {
    boards: Boards,
    patience: Patience,
    imports: Imports,
    /// Present where each rank can read the private memory of all others.
    attached: Option<Attached>,
    /// Bytes from which they do.
    attached_from: usize,
    choices: Choices,
    /// What the ranks said of their memory when the call began.
    shown: Vec<Shown>,
    /// Where contributions are read to before they are folded: a piece of each rank's.
    scratch: Vec<u64>,
    /// How many exchanges there have been.
    exchanges: u64,
    /// How many rounds there have been. Equal on all ranks between calls.
    rounds: u64,
    /// So many rounds are known to be consumed by everyone.
    consumed: u64,
    /// By parity: the call whose detail stands on our board, and its hash.
    announced: [Option<(CallSignature, u64)>; 2],
    /// The payloads of all lines, for folding.
    lines: Box<[board::Payload]>,
    /// Room for one span of each rank.
    spans: Vec<Span>,
    own: Allocation,
}

impl Group {
    /// The largest element that can be reduced, in bytes, in a group of `size` ranks.
    pub(crate) const fn largest_element(size: usize) -> usize {
        match board::SLOT.checked_div(size) {
            Some(bytes) => bytes,
            None => 0,
        }
    }

    /// A group of the ranks whose boards these are, by rank; that of `rank` is `own` and as yet unused. `None` when a
    /// board is too short, or `rank` has none.
    ///
    /// # Safety
    ///
    /// Each board is a mapping of [`BOARD_LEN`] bytes, which were zero when its owner allocated them. They stay mapped
    /// while the group lives, and the ranks use them for this group only.
    pub(crate) unsafe fn new(
        rank: Rank,
        own: Allocation,
        mut boards: Vec<Direct>,
        patience: Patience,
    ) -> Option<Self> {
        let size = boards.len();
        *boards.get_mut(rank)? = Direct { address: own.address(), len: own.len() };
        // SAFETY: by the contract above; our own board is kept mapped by `own`.
        let boards: Option<Box<[_]>> =
            boards.into_iter().map(|mapped| unsafe { Board::new(mapped) }).collect();
        Some(Self {
            boards: Boards::new(rank, boards?)?,
            patience,
            imports: Imports::new(size),
            attached: None,
            attached_from: shown::ATTACHED_FROM,
            choices: Choices::default(),
            shown: Vec::with_capacity(size),
            scratch: Vec::new(),
            exchanges: 0,
            rounds: 0,
            consumed: 0,
            announced: [None; 2],
            lines: vec![board::Payload::default(); size].into(),
            spans: Vec::with_capacity(size),
            own,
        })
    }

    /// Lets the ranks read each other's private memory. All do, or none does.
    pub(super) fn attach(&mut self, attached: Attached) {
        self.attached = Some(attached);
    }

    /// Ends the group. The boards may be given back now.
    pub(crate) fn close(mut self, environment: &mut impl Environment) -> Allocation {
        self.imports.release_all(environment);
        self.own
    }
}
