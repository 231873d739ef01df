//! The same ranks as a communicator of both sides.

use crate::call::Call;
use gradwire::{Communicator, Rank, Result};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::Communicator as _;

pub(crate) struct Group {
    pub(crate) ours: Communicator,
    pub(crate) theirs: SimpleCommunicator,
    /// The members by their ranks in the world.
    pub(crate) members: Vec<Rank>,
}

impl Group {
    pub(crate) fn world(ours: Communicator, theirs: SimpleCommunicator) -> Self {
        let members = (0..ours.size()).collect();
        Self { ours, theirs, members }
    }

    pub(crate) fn rank(&self) -> Rank {
        self.ours.rank()
    }

    pub(crate) fn size(&self) -> usize {
        self.members.len()
    }

    /// What differs between both sides, if anything does.
    pub(crate) fn difference(&self) -> Option<String> {
        let ours = (self.ours.rank() as i32, self.ours.size() as i32);
        let theirs = (self.theirs.rank(), self.theirs.size());
        let expected = self.members.len() as i32;
        (ours != theirs || ours.1 != expected).then(|| {
            format!(
                "a communicator is rank and size {ours:?} here and {theirs:?} in MPI, of {expected} members"
            )
        })
    }

    /// Splits both by random colours and keys; some ranks may be in none of the parts.
    pub(crate) fn split(&self, call: &Call) -> Result<Option<Self>> {
        let parts: Vec<(Option<u32>, i8)> = self.members.iter().map(|member| part(call, *member)).collect();
        let (colour, key) = parts[self.rank()];
        let ours = self.ours.split(colour, key.into())?;
        let color = colour.map_or_else(Color::undefined, |colour| Color::with_value(colour as i32));
        let theirs = self.theirs.split_by_color_with_key(color, key.into());
        // Ties keep the order of the parent.
        let mut members: Vec<(i8, Rank)> = parts
            .iter()
            .zip(&self.members)
            .filter(|((other, _), _)| *other == colour)
            .map(|((_, key), member)| (*key, *member))
            .collect();
        members.sort_by_key(|(key, _)| *key);
        let members = members.into_iter().map(|(_, member)| member).collect();
        Ok(ours.zip(theirs).map(|(ours, theirs)| Self { ours, theirs, members }))
    }
}

/// The part a rank of the world chooses.
fn part(call: &Call, member: Rank) -> (Option<u32>, i8) {
    let mut random = call.random(member);
    let colour = random.u32(..8);
    ((colour < 7).then_some(colour % 2), random.i8(-2..2))
}
