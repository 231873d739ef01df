//! The first part of every collective on the network: do all ranks call the same thing?
//!
//! Dissemination: in round k a rank tells the rank 2^k before it all it knows, and hears from the rank 2^k after
//! it. After ⌈log2 p⌉ rounds everybody knows everything. As long as all signatures are equal a frame carries one
//! signature and the small contributions of the ranks it speaks for (Bruck's all-gather), which is all that a small
//! collective needs. Where they differ it carries the table of who called what, and all ranks end with the same table.
//! The rounds are the same whatever was called, so that they also meet where the calls differ.

use super::transfer::Breach;
use crate::pattern::{dissemination, ring};
use crate::plan::Blocks;
use gradwire_schema::{CallSignature, FrameHeader, FrameKind, MismatchTable};
use std::ops::Range;

/// Bytes that each rank contributes to a small collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Contribution {
    /// Every rank as many.
    Each(usize),
    /// Only one rank.
    Only(usize, usize),
    /// Every rank its block, of elements that have so many bytes.
    Blocks(Blocks, usize),
}

impl Contribution {
    /// None at all.
    pub(crate) const NOTHING: Self = Self::Each(0);

    pub(crate) fn of(&self, rank: usize) -> usize {
        match self {
            Self::Each(len) => *len,
            Self::Only(root, len) => {
                if rank == *root {
                    *len
                } else {
                    0
                }
            }
            Self::Blocks(blocks, size) => blocks.range(0, rank).len() * size,
        }
    }
}

/// What a rank knows.
#[derive(Debug)]
pub(crate) struct Agreement {
    rank: usize,
    size: usize,
    signature: CallSignature,
    contribution: Contribution,
    /// Contributions of the ranks `rank`, `rank + 1`, ... as far as they are known; meaningless once `table` is there.
    gathered: Vec<u8>,
    /// Who called what, once two signatures differ.
    table: Option<MismatchTable>,
    /// Rounds heard.
    round: u32,
    /// Rounds told.
    told: u32,
    /// Frames of later rounds.
    early: Vec<(u32, FrameKind, Vec<u8>)>,
}

impl Agreement {
    pub(crate) fn new(
        rank: usize,
        size: usize,
        signature: CallSignature,
        contribution: Contribution,
        own: &[u8],
    ) -> Self {
        debug_assert_eq!(own.len(), contribution.of(rank));
        Self {
            rank,
            size,
            signature,
            contribution,
            gathered: own.to_vec(),
            table: None,
            round: 0,
            told: 0,
            early: Vec::new(),
        }
    }

    pub(crate) fn rounds(&self) -> u32 {
        dissemination::rounds(self.size)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.round == self.rounds()
    }

    /// The ranks that the next frames are awaited from.
    pub(crate) fn waiting_for(&self) -> impl Iterator<Item = usize> {
        (self.round..self.rounds())
            .filter(|round| !self.early.iter().any(|(heard, ..)| heard == round))
            .map(|round| ring::forward(self.size, self.rank, 1 << round))
    }

    /// Whether it is known what the rank calls.
    pub(crate) fn has_heard(&self, rank: usize) -> bool {
        let distance = (rank + self.size - self.rank) % self.size;
        self.is_over() || distance < 1 << self.round
    }

    /// The next frame to send: to whom, its kind and its round, and its payload. Called until there is none.
    pub(crate) fn tell(&mut self, payload: &mut Vec<u8>) -> Option<(usize, FrameKind, u32)> {
        // What is told in round k has been heard in the rounds before.
        if self.told == self.rounds() || self.told > self.round {
            return None;
        }
        let round = self.told;
        self.told += 1;
        payload.clear();
        let kind = match &self.table {
            None => {
                payload.extend_from_slice(&self.signature.encode());
                payload.extend_from_slice(&self.gathered[..self.bytes_of(0..self.blocks(round))]);
                FrameKind::Agree
            }
            Some(table) => {
                payload.extend_from_slice(&table.encode());
                FrameKind::Mismatch
            }
        };
        Some((ring::backward(self.size, self.rank, 1 << round), kind, round))
    }

    /// A frame of one of the rounds, of any rank of the communicator.
    pub(crate) fn hear(&mut self, source: usize, header: &FrameHeader, payload: &[u8]) -> Result<(), Breach> {
        let round = u32::try_from(header.offset).ok().filter(|round| *round < self.rounds());
        let Some(round) = round.filter(|round| source == ring::forward(self.size, self.rank, 1 << round))
        else {
            return Err(Breach("it spoke in a round of agreement that is not its own"));
        };
        if round < self.round || self.early.iter().any(|(other, ..)| *other == round) {
            return Err(Breach("it spoke twice in a round of agreement"));
        }
        self.early.push((round, header.kind, payload.to_vec()));
        while let Some(index) = self.early.iter().position(|(round, ..)| *round == self.round) {
            let (round, kind, payload) = self.early.swap_remove(index);
            self.take(round, kind, &payload)?;
            self.round += 1;
        }
        Ok(())
    }

    /// What the ranks called, if not all the same. After the last round all ranks have the same table.
    pub(crate) fn mismatch(&self) -> Option<&MismatchTable> {
        self.table.as_ref()
    }

    /// All contributions, in rank order.
    pub(crate) fn into_gathered(mut self) -> Vec<u8> {
        let wrap = self.bytes_of(0..self.size - self.rank);
        self.gathered.rotate_left(wrap);
        self.gathered
    }

    fn take(&mut self, round: u32, kind: FrameKind, payload: &[u8]) -> Result<(), Breach> {
        let distance = 1_usize << round;
        let heard = distance..distance + self.blocks(round);
        if kind == FrameKind::Mismatch {
            let table = MismatchTable::decode(payload, self.size as u32)
                .map_err(|_| Breach("its table of calls makes no sense"))?;
            return self.disagree(distance, &table);
        }
        let Some((signature, contributions)) = payload.split_first_chunk::<{ CallSignature::LEN }>() else {
            return Err(Breach("its call signature is cut off"));
        };
        let signature =
            CallSignature::decode(signature).map_err(|_| Breach("its call signature makes no sense"))?;
        if self.table.is_none() && signature == self.signature {
            if contributions.len() != self.bytes_of(heard) {
                return Err(Breach("it contributed another length than its call says"));
            }
            self.gathered.extend_from_slice(contributions);
            return Ok(());
        }
        let table = self.table_of(heard, signature);
        self.disagree(distance, &table)
    }

    fn disagree(&mut self, known: usize, table: &MismatchTable) -> Result<(), Breach> {
        let mut own = self.table.take().unwrap_or_else(|| self.table_of(0..known, self.signature));
        own.merge(table).map_err(|_| Breach("its table of calls contradicts what was heard before"))?;
        self.table = Some(own);
        Ok(())
    }

    /// Entries for ranks given by their distance, which all called the same.
    fn table_of(&self, distances: Range<usize>, signature: CallSignature) -> MismatchTable {
        let rank_at = |distance| ring::forward(self.size, self.rank, distance) as u32;
        let mut table = MismatchTable::new(rank_at(distances.start), signature);
        for distance in distances.skip(1) {
            // Distinct ranks: nothing can contradict.
            let _ = table.merge(&MismatchTable::new(rank_at(distance), signature));
        }
        table
    }

    /// How many ranks a frame of a round speaks for.
    fn blocks(&self, round: u32) -> usize {
        let distance = 1_usize << round;
        distance.min(self.size - distance)
    }

    /// Bytes of the contributions of ranks given by their distance.
    fn bytes_of(&self, distances: Range<usize>) -> usize {
        match &self.contribution {
            Contribution::Each(len) => distances.len() * len,
            Contribution::Only(root, len) => {
                if distances.contains(&((root + self.size - self.rank) % self.size)) { *len } else { 0 }
            }
            of_each @ Contribution::Blocks(..) => {
                distances.map(|distance| of_each.of(ring::forward(self.size, self.rank, distance))).sum()
            }
        }
    }
}
