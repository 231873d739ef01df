//! Who called what: the table that ranks exchange once they disagree.

use super::{CallSignature, SignatureError};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian::U32, transmute};

/// The signatures of some ranks of a communicator, sorted by rank.
///
/// Encoded it is one entry of 48 bytes for each rank: the rank (4 bytes), 4 bytes of zero, and the signature. The
/// length tells how many there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MismatchTable {
    entries: Vec<(u32, CallSignature)>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    rank: U32,
    reserved: U32,
    signature: [u8; CallSignature::LEN],
}

/// Why bytes are no table, or two tables do not fit together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Not a whole number of entries.
    #[error("a table of call signatures has {len} bytes, which is no multiple of {}", size_of::<Wire>())]
    Length {
        /// Bytes of the table.
        len: usize,
    },
    /// More entries than the communicator has ranks.
    #[error("a table of call signatures has {entries} entries for {size} ranks")]
    TooLong {
        /// How many there are.
        entries: usize,
        /// The communicator's size.
        size: u32,
    },
    /// The ranks are not ascending, or one of them is none of the communicator's.
    #[error("a table of call signatures has rank {rank} where it cannot be")]
    Rank {
        /// The first such rank.
        rank: u32,
    },
    /// Bytes that must be 0 are not.
    #[error("the entry of rank {rank} has reserved bytes that are not 0")]
    Reserved {
        /// Whose entry.
        rank: u32,
    },
    /// An entry is no signature.
    #[error("the entry of rank {rank}: {error}")]
    Signature {
        /// Whose entry.
        rank: u32,
        /// What is wrong with it.
        error: SignatureError,
    },
    /// One rank is said to have called two things at once.
    #[error("rank {rank} is said to have made two different calls at once")]
    Contradiction {
        /// Which rank.
        rank: u32,
    },
}

impl MismatchTable {
    /// The table that a rank begins with: its own call.
    #[must_use]
    pub fn new(rank: u32, signature: CallSignature) -> Self {
        Self { entries: vec![(rank, signature)] }
    }

    /// Ranks and their calls, by rank.
    #[must_use]
    pub fn entries(&self) -> &[(u32, CallSignature)] {
        &self.entries
    }

    /// Whether all ranks in it made the same call.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.entries.windows(2).all(|pair| pair[0].1 == pair[1].1)
    }

    /// Each different call with the ranks that made it, most ranks first; among equals, the one with the lowest rank.
    #[must_use]
    pub fn calls(&self) -> Vec<(CallSignature, Vec<u32>)> {
        let mut calls: Vec<(CallSignature, Vec<u32>)> = Vec::new();
        for &(rank, signature) in &self.entries {
            match calls.iter_mut().find(|(call, _)| *call == signature) {
                Some((_, ranks)) => ranks.push(rank),
                None => calls.push((signature, vec![rank])),
            }
        }
        calls.sort_by_key(|(_, ranks)| std::cmp::Reverse(ranks.len()));
        calls
    }

    /// Adds what another rank knows.
    ///
    /// # Errors
    ///
    /// [`TableError::Contradiction`] when the two tables differ about a rank. Nothing was added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), TableError> {
        let mut merged = Vec::with_capacity(self.entries.len() + other.entries.len());
        let (mut ours, mut theirs) = (self.entries.as_slice(), other.entries.as_slice());
        while let (Some((a, ours_rest)), Some((b, theirs_rest))) = (ours.split_first(), theirs.split_first())
        {
            if a.0 == b.0 && a.1 != b.1 {
                return Err(TableError::Contradiction { rank: a.0 });
            }
            merged.push(if a.0 <= b.0 { *a } else { *b });
            if a.0 <= b.0 {
                ours = ours_rest;
            }
            if b.0 <= a.0 {
                theirs = theirs_rest;
            }
        }
        merged.extend_from_slice(ours);
        merged.extend_from_slice(theirs);
        self.entries = merged;
        Ok(())
    }

    /// The bytes to send.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.entries
            .iter()
            .flat_map(|(rank, signature)| {
                let wire = Wire { rank: (*rank).into(), reserved: 0.into(), signature: signature.encode() };
                let bytes: [u8; size_of::<Wire>()] = transmute!(wire);
                bytes
            })
            .collect()
    }

    /// Reads the table of a communicator with `size` ranks.
    ///
    /// # Errors
    ///
    /// [`TableError`], by the first entry that is wrong.
    pub fn decode(bytes: &[u8], size: u32) -> Result<Self, TableError> {
        let wires = <[Wire]>::ref_from_bytes(bytes).map_err(|_| TableError::Length { len: bytes.len() })?;
        if wires.len() as u64 > u64::from(size) {
            return Err(TableError::TooLong { entries: wires.len(), size });
        }
        let mut entries = Vec::with_capacity(wires.len());
        let mut next = 0;
        for wire in wires {
            let rank = wire.rank.get();
            if rank < next || rank >= size {
                return Err(TableError::Rank { rank });
            }
            if wire.reserved.get() != 0 {
                return Err(TableError::Reserved { rank });
            }
            let signature = CallSignature::decode(&wire.signature)
                .map_err(|error| TableError::Signature { rank, error })?;
            entries.push((rank, signature));
            next = rank + 1;
        }
        Ok(Self { entries })
    }
}
