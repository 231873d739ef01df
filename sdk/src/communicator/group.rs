//! Groups: ordered sets of ranks, as values.

use super::Communicator;
use super::call::misuse;
use crate::engine::Process;
use crate::job::Job;
use crate::{Rank, Result};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Weak};

/// An ordered set of processes of a job: what a communicator would be made of.
///
/// A group is a value. None of its methods communicates, and it may outlive the communicator it was taken from. It
/// remembers processes, not rank numbers, so that groups of different communicators of a job may be united and compared:
/// rank 0 of one is not rank 0 of another.
///
/// ```
/// gradwire::run(4, |comm| {
///     let all = comm.group();
///     let even = all.include((0..all.size()).step_by(2)).unwrap();
///     let odd = all.difference(&even).unwrap();
///     assert_eq!(odd.translate(1, &all), Some(3));
///     if let Some(even) = comm.create(&even).unwrap() {
///         assert_eq!((even.size(), even.rank()), (2, comm.rank() / 2));
///     }
/// }).unwrap();
/// ```
#[derive(Clone)]
pub struct Group {
    /// Not kept alive: a group is no reason for a job to go on.
    job: Weak<Job>,
    own: Process,
    members: Arc<[Process]>,
}

/// How two groups are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// The same processes in the same order.
    Identical,
    /// The same processes in another order.
    Similar,
    /// Not the same processes.
    Different,
}

impl Communicator {
    /// The ranks of this communicator, in their order.
    #[must_use]
    pub fn group(&self) -> Group {
        let own = self.members[self.rank];
        Group { job: Arc::downgrade(&self.job), own, members: self.members.clone() }
    }

    /// How the ranks of two communicators are alike. Even those of identical ranks are independent: a call on one never
    /// meets a call on the other.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Relation {
        self.group().compare(&other.group())
    }
}

impl Group {
    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// The number of this process in the group; `None` where it is not a member.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        self.rank_of(self.own)
    }

    /// The group of these ranks of this group, in this order: `[3, 1]`, `0..4`, `(0..8).step_by(2)`.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when there is no such rank, or it is given twice.
    pub fn include(&self, ranks: impl IntoIterator<Item = Rank>) -> Result<Self> {
        let mut included = HashSet::new();
        let members = ranks.into_iter().map(|rank| {
            if !included.insert(rank) {
                return Err(misuse(format!("rank {rank} is given twice: a group holds each rank once")));
            }
            let size = self.size();
            let none = || misuse(format!("the group has no rank {rank}: its ranks are below {size}"));
            self.members.get(rank).copied().ok_or_else(none)
        });
        let members = members.collect::<Result<_>>()?;
        Ok(self.with(members))
    }

    /// The group without these ranks.
    ///
    /// # Errors
    ///
    /// As [`include`](Self::include).
    pub fn exclude(&self, ranks: impl IntoIterator<Item = Rank>) -> Result<Self> {
        self.difference(&self.include(ranks)?)
    }

    /// The members of this group, then those of the other that are not in this one.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::Error::Misuse) when the groups are of different jobs, or of different ranks that live in one
    /// process.
    pub fn union(&self, other: &Self) -> Result<Self> {
        let own = self.set();
        let added = self.same_job(other)?.iter().filter(|process| !own.contains(process));
        Ok(self.with(self.members.iter().chain(added).copied().collect()))
    }

    /// The members of this group that are in the other one too, in this group's order.
    ///
    /// # Errors
    ///
    /// As [`union`](Self::union).
    pub fn intersection(&self, other: &Self) -> Result<Self> {
        self.same_job(other)?;
        let other = other.set();
        Ok(self.with(self.members.iter().filter(|process| other.contains(process)).copied().collect()))
    }

    /// The members of this group that are not in the other one, in this group's order.
    ///
    /// # Errors
    ///
    /// As [`union`](Self::union).
    pub fn difference(&self, other: &Self) -> Result<Self> {
        self.same_job(other)?;
        let other = other.set();
        Ok(self.with(self.members.iter().filter(|process| !other.contains(process)).copied().collect()))
    }

    /// How the groups are alike. Groups of different jobs are [`Different`](Relation::Different).
    #[must_use]
    pub fn compare(&self, other: &Self) -> Relation {
        if self.same_job(other).is_err() {
            Relation::Different
        } else if self.members == other.members {
            Relation::Identical
        } else if self.set() == other.set() {
            Relation::Similar
        } else {
            Relation::Different
        }
    }

    /// The number in another group of what is `rank` in this one; `None` where there is no such rank, or the other group
    /// does not hold it.
    #[must_use]
    pub fn translate(&self, rank: Rank, other: &Self) -> Option<Rank> {
        self.same_job(other).ok()?;
        other.rank_of(*self.members.get(rank)?)
    }

    /// The members, for a communicator of the same job that holds them all.
    pub(super) fn members_within(&self, communicator: &Communicator) -> Result<Arc<[Process]>> {
        let all = communicator.group();
        all.same_job(self)?;
        let within = all.set();
        match self.members.iter().position(|process| !within.contains(process)) {
            None => Ok(self.members.clone()),
            Some(rank) => Err(misuse(format!(
                "rank {rank} of the group is not in the communicator: make the group of ranks of the communicator"
            ))),
        }
    }

    /// The members of another group, if they are processes of the same job as seen by the same rank.
    fn same_job<'a>(&self, other: &'a Self) -> Result<&'a [Process]> {
        if self.job.ptr_eq(&other.job) {
            Ok(&other.members)
        } else {
            Err(misuse("the groups are of different jobs: take both from communicators of one".to_owned()))
        }
    }

    fn rank_of(&self, process: Process) -> Option<Rank> {
        self.members.iter().position(|member| *member == process)
    }

    fn set(&self) -> HashSet<&Process> {
        self.members.iter().collect()
    }

    fn with(&self, members: Arc<[Process]>) -> Self {
        Self { members, ..self.clone() }
    }
}

impl fmt::Debug for Group {
    /// The members by their rank in the communicator of all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.members).finish()
    }
}
