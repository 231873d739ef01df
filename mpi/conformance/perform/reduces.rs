//! Calls that reduce.

use super::Pair;
use crate::call::Kind;
use crate::compare::{Contributions, copy, values};
use crate::reducing::How;
use crate::value::Value;
use gradwire::Result;
use mpi::request::Request;
use mpi::traits::*;

impl<T: Value> Pair<'_, T> {
    pub(super) fn all_reduce(&mut self) -> Result<()> {
        let [mut ours, mut theirs] = [copy(&self.source), self.nothing(1)];
        match self.call.kind {
            Kind::AllReduceInto => {
                ours = self.nothing(1);
                self.reduce_ours(How::Into(&self.source, &mut ours))?;
            }
            Kind::AllReduceShared => self.reduce_ours(How::Shared(&mut ours))?,
            _ => self.reduce_ours(How::InPlace(&mut ours))?,
        }
        self.group.theirs.all_reduce_into(&self.source[..], &mut theirs[..], self.theirs());
        self.reduced(Contributions { nth: 0, offset: 0, ranks: self.group.size() }, &ours, &theirs);
        Ok(())
    }

    pub(super) fn all_reduces(&mut self) -> Result<()> {
        let own = self.group.members[self.group.rank()];
        let sources: Vec<Vec<T>> =
            (0..self.call.several).map(|nth| values(self.call, own, nth, self.call.count)).collect();
        let copies = || sources.iter().map(|source| copy(source)).collect::<Vec<_>>();
        let [mut ours, mut theirs] = [copies(), copies()];
        match self.call.kind {
            Kind::AllReducesOwned => self.reduce_ours(How::Owned(&mut ours))?,
            _ => self.reduce_ours(How::Scope(&mut ours))?,
        }
        let operation = self.theirs();
        mpi::request::scope(|scope| {
            let pairs = sources.iter().zip(&mut theirs);
            let requests: Vec<_> = pairs
                .map(|(source, result)| {
                    self.group.theirs.immediate_all_reduce_into(
                        scope,
                        &source[..],
                        &mut result[..],
                        operation,
                    )
                })
                .collect();
            self.group.theirs.barrier();
            requests.into_iter().rev().for_each(Request::wait_without_status);
        });
        for (nth, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            self.reduced(Contributions { nth, offset: 0, ranks: self.group.size() }, ours, theirs);
        }
        Ok(())
    }

    pub(super) fn reduce(&mut self) -> Result<()> {
        let root = self.root();
        // Elsewhere nothing changes.
        let [mut ours, mut theirs] = [copy(&self.source), copy(&self.source)];
        if self.call.chooses(3) {
            self.reduce_ours(How::RootInto(&self.source, &mut ours, root))?;
        } else {
            self.reduce_ours(How::Root(&mut ours, root))?;
        }
        let process = self.group.theirs.process_at_rank(root as i32);
        if self.group.rank() == root {
            process.reduce_into_root(&self.source[..], &mut theirs[..], self.theirs());
            self.reduced(Contributions { nth: 0, offset: 0, ranks: self.group.size() }, &ours, &theirs);
        } else {
            process.reduce_into(&self.source[..], self.theirs());
            self.comparison.moved(&ours, &theirs);
        }
        Ok(())
    }

    pub(super) fn reduce_scatter(&mut self) -> Result<()> {
        let [mut ours, mut theirs] = [self.nothing(1), self.nothing(1)];
        self.reduce_ours(How::Scatter(&self.source, &mut ours))?;
        self.group.theirs.reduce_scatter_block_into(&self.source[..], &mut theirs[..], self.theirs());
        let offset = self.group.rank() * self.call.count;
        self.reduced(Contributions { nth: 0, offset, ranks: self.group.size() }, &ours, &theirs);
        Ok(())
    }

    pub(super) fn scan(&mut self) -> Result<()> {
        let [mut ours, mut theirs] = [copy(&self.source), self.nothing(1)];
        self.reduce_ours(How::Scan(&mut ours))?;
        self.group.theirs.scan_into(&self.source[..], &mut theirs[..], self.theirs());
        self.reduced(Contributions { nth: 0, offset: 0, ranks: self.group.rank() + 1 }, &ours, &theirs);
        Ok(())
    }

    /// On rank 0 MPI leaves open what comes out.
    pub(super) fn exclusive_scan(&mut self) -> Result<()> {
        let [mut ours, mut theirs] = [self.nothing(1), self.nothing(1)];
        self.reduce_ours(How::ExclusiveScan(&self.source, &mut ours))?;
        self.group.theirs.exclusive_scan_into(&self.source[..], &mut theirs[..], self.theirs());
        if self.group.rank() > 0 {
            self.reduced(Contributions { nth: 0, offset: 0, ranks: self.group.rank() }, &ours, &theirs);
        }
        Ok(())
    }

    fn reduced(&mut self, contributions: Contributions, ours: &[T], theirs: &[T]) {
        self.comparison.reduced(self.call, self.group, contributions, ours, theirs);
    }
}
