//! Calls that move blocks of values, all of one length.

use super::Pair;
use crate::compare::copy;
use crate::value::Value;
use gradwire::Result;
use mpi::traits::*;

impl<T: Value> Pair<'_, T> {
    pub(super) fn broadcast(&mut self) -> Result<()> {
        let root = self.root();
        let [mut ours, mut theirs] = [copy(&self.source), copy(&self.source)];
        self.group.ours.broadcast(&mut ours, root)?;
        self.group.theirs.process_at_rank(root as i32).broadcast_into(&mut theirs[..]);
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    pub(super) fn gather(&mut self) -> Result<()> {
        let root = self.root();
        let blocks = if self.group.rank() == root { self.group.size() } else { 0 };
        let [mut ours, mut theirs] = [self.nothing(blocks), self.nothing(blocks)];
        self.group.ours.gather_into(&self.source, &mut ours, root)?;
        let process = self.group.theirs.process_at_rank(root as i32);
        if self.group.rank() == root {
            process.gather_into_root(&self.source[..], &mut theirs[..]);
        } else {
            process.gather_into(&self.source[..]);
        }
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    pub(super) fn all_gather(&mut self) -> Result<()> {
        let blocks = self.group.size();
        let [mut ours, mut theirs] = [self.nothing(blocks), self.nothing(blocks)];
        self.group.ours.all_gather_into(&self.source, &mut ours)?;
        self.group.theirs.all_gather_into(&self.source[..], &mut theirs[..]);
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    pub(super) fn scatter(&mut self) -> Result<()> {
        let root = self.root();
        let [mut ours, mut theirs] = [self.nothing(1), self.nothing(1)];
        let process = self.group.theirs.process_at_rank(root as i32);
        if self.group.rank() == root {
            let source = self.blocks(self.group.size());
            self.group.ours.scatter_into(&source, &mut ours, root)?;
            process.scatter_into_root(&source[..], &mut theirs[..]);
        } else {
            self.group.ours.scatter_into(&[], &mut ours, root)?;
            process.scatter_into(&mut theirs[..]);
        }
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    pub(super) fn all_to_all(&mut self) -> Result<()> {
        let size = self.group.size();
        let source = self.blocks(size);
        let [mut ours, mut theirs] = [self.nothing(size), self.nothing(size)];
        self.group.ours.all_to_all_into(&source, &mut ours)?;
        self.group.theirs.all_to_all_into(&source[..], &mut theirs[..]);
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    /// Different calls under way at once.
    pub(super) fn moves_in_scope(&mut self) -> Result<()> {
        let (root, size) = (self.root(), self.group.size());
        let [mut our_copy, mut their_copy] = [copy(&self.source), copy(&self.source)];
        let [mut ours, mut theirs] = [self.nothing(size), self.nothing(size)];
        self.group.ours.scope(|scope| {
            let copied = scope.broadcast(&mut our_copy, root);
            let gathered = scope.all_gather_into(&self.source, &mut ours);
            let met = scope.barrier();
            gathered.wait().1?;
            met.wait().1?;
            copied.wait().1
        })??;
        mpi::request::scope(|scope| {
            let process = self.group.theirs.process_at_rank(root as i32);
            let copied = process.immediate_broadcast_into(scope, &mut their_copy[..]);
            let gathered =
                self.group.theirs.immediate_all_gather_into(scope, &self.source[..], &mut theirs[..]);
            gathered.wait_without_status();
            copied.wait_without_status();
        });
        self.comparison.moved(&ours, &theirs);
        self.comparison.moved(&our_copy, &their_copy);
        Ok(())
    }
}
