//! Communicators made of groups.

use super::call::misuse;
use super::{Communicator, Group};
use crate::Result;
use crate::engine::Process;
use gradwire_schema::layout::fingerprint_of_name;
use gradwire_schema::{CallSignature, Collective, LayoutDigest};

impl Communicator {
    /// A communicator of the ranks of a group, in the group's order; ranks outside of it get `None`. All ranks of this
    /// communicator call it, with the same group.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the group holds ranks that are not in this communicator;
    /// [`Mismatch`](crate::Error::Mismatch), on all ranks, when they pass different groups; and those of every collective.
    pub fn create(&self, group: &Group) -> Result<Option<Self>> {
        let members = group.members_within(self)?;
        let signature = CallSignature {
            count: members.len() as u64,
            layout: digest(&members),
            ..CallSignature::new(Collective::CreateGroup)
        };
        let sequence = self.calls.count();
        self.tell_all(signature, &[])?;
        group.rank().map(|rank| self.derive(sequence, 0, members, rank)).transpose()
    }

    /// As [`create`](Self::create), called by the members of the group only: the other ranks need not know of it.
    ///
    /// # Errors
    ///
    /// [`Misuse`] when the group does not hold this rank, or holds ranks that are not in this communicator;
    /// [`TimedOut`](crate::Error::TimedOut) when a member does not call it with the same group. That error numbers the
    /// ranks as the group does, and after it the members cannot create a communicator of the same group in this way any
    /// more.
    ///
    /// [`Misuse`]: crate::Error::Misuse
    pub fn create_from_group(&self, group: &Group) -> Result<Self> {
        let members = group.members_within(self)?;
        let Some(rank) = group.rank() else {
            return Err(misuse("this rank is not in the group: only its members make the call".to_owned()));
        };
        let part = digest(&members);
        // The members have made different calls on this communicator, but the same creations of this group.
        let mut created = self.created.borrow_mut();
        let count = created.entry(part).or_insert(0);
        *count += 1;
        let sequence = *count;
        drop(created);
        self.derive(sequence, part, members, rank)
    }
}

/// The identity of a group between ranks.
fn digest(members: &[Process]) -> u64 {
    let start = LayoutDigest::new(fingerprint_of_name("group"));
    members.iter().fold(start, |digest, process| digest.length(u64::from(*process))).finish()
}
