//! Communicators made of communicators.

use super::Communicator;
use super::call::{Collective, misuse};
use crate::engine::{GroupId, Process};
use crate::plan;
use crate::{Error, Rank, Result};
use gradwire_schema::layout::fingerprint_of_name;
use gradwire_schema::{CallSignature, Datatype, LayoutDigest};
use std::sync::Arc;

impl Communicator {
    /// A communicator of the same ranks, whose calls are independent of this one's. All ranks call it.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn duplicate(&self) -> Result<Self> {
        let signature = CallSignature::new(gradwire_schema::Collective::Duplicate);
        let sequence = self.calls.count();
        self.tell_all(signature, &[])?;
        self.derive(sequence, 0, self.members.clone(), self.rank)
    }

    /// The communicator that a window is on: as a duplicate, but ranks that name another type of elements get a mismatch.
    pub(crate) fn duplicate_for_window(&self, datatype: Datatype) -> Result<Self> {
        let signature = CallSignature {
            datatype: Some(datatype),
            ..CallSignature::new(gradwire_schema::Collective::CreateWindow)
        };
        let sequence = self.calls.count();
        self.tell_all(signature, &[])?;
        self.derive(sequence, 0, self.members.clone(), self.rank)
    }

    /// Splits the ranks: those that pass the same `colour` form a communicator, ordered by `key`, then by their rank here.
    /// A rank that passes `None` is in none of them. All ranks call it.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn split(&self, colour: Option<u32>, key: i64) -> Result<Option<Self>> {
        let signature = CallSignature::new(gradwire_schema::Collective::Split);
        self.split_by(signature, colour, key)
    }

    /// Splits the ranks by host, ordered by `key`, then by their rank here: a host is where ranks share memory or, where
    /// no transport tries that, what has one name. All ranks call it.
    ///
    /// # Errors
    ///
    /// Those of every collective.
    pub fn split_by_host(&self, key: i64) -> Result<Self> {
        // The ranks of a host have the same first rank among them.
        let first = self.local().next().unwrap_or(self.rank);
        let signature = CallSignature::new(gradwire_schema::Collective::SplitByHost);
        let colour = u32::try_from(first).map_err(|_| misuse("more ranks than colours".to_owned()))?;
        self.split_by(signature, Some(colour), key)?.ok_or_else(|| Error::Bug("a rank without a host".into()))
    }

    fn split_by(&self, signature: CallSignature, colour: Option<u32>, key: i64) -> Result<Option<Self>> {
        let sequence = self.calls.count();
        // Colour, whether there is one, key: 16 bytes a rank.
        let mut own = [0; ENTRY];
        own[..4].copy_from_slice(&colour.unwrap_or(0).to_le_bytes());
        own[4] = u8::from(colour.is_some());
        own[8..].copy_from_slice(&key.to_le_bytes());
        let all = self.tell_all(signature, &own)?;
        let Some(colour) = colour else { return Ok(None) };
        let mut ranks: Vec<(i64, Rank)> = all
            .chunks_exact(ENTRY)
            .enumerate()
            .filter(|(_, entry)| entry[4] == 1 && entry[..4] == colour.to_le_bytes())
            .map(|(rank, entry)| (entry[8..].try_into().map_or(0, i64::from_le_bytes), rank))
            .collect();
        ranks.sort_unstable();
        let rank = ranks.iter().take_while(|(_, rank)| *rank != self.rank).count();
        let members: Arc<[Process]> = ranks.iter().map(|(_, rank)| self.members[*rank]).collect();
        self.derive(sequence, u64::from(colour) + 1, members, rank).map(Some)
    }

    /// Every rank's bytes, by rank: a collective of the library's own.
    pub(crate) fn tell_all(&self, signature: CallSignature, own: &[u8]) -> Result<Vec<u8>> {
        let shape = self.shape(plan::Collective::AllGather, own.len(), 1, None, None);
        let mut all = vec![0; own.len() * self.size()];
        all[shape.block(self.rank)].copy_from_slice(own);
        self.collect(&Collective { signature, shape, operation: None }, &mut all)?;
        Ok(all)
    }

    /// The communicator that all its members derive alike: its number is a hash of where it comes from.
    pub(super) fn derive(
        &self,
        sequence: u64,
        part: u64,
        members: Arc<[Process]>,
        rank: Rank,
    ) -> Result<Self> {
        let id = LayoutDigest::new(fingerprint_of_name("communicator"))
            .length(self.id.0)
            .length(sequence)
            .length(part);
        let derived = Self::new(self.job.clone(), GroupId(id.finish()), members, rank, self.timeout())?;
        derived.set_determinism(self.determinism());
        derived.set_send_buffer(self.send_buffer());
        Ok(derived)
    }
}

const ENTRY: usize = 16;
