//! Calls that move blocks of lengths of their own.

use super::Pair;
use crate::value::Value;
use gradwire::Result;
use mpi::Count;
use mpi::datatype::{Partition, PartitionMut};
use mpi::traits::*;

impl<T: Value> Pair<'_, T> {
    /// How many values go from one rank to another: any rank can tell. Some blocks are empty.
    fn length(&self, from: usize, to: usize) -> usize {
        let mut random =
            self.call.random(self.group.members[from] * 1000 + self.group.members[to] + 7_000_000);
        if random.u8(..4) == 0 { 0 } else { random.usize(..=self.call.count) }
    }

    pub(super) fn all_gather_varying(&mut self) -> Result<()> {
        let counts: Vec<usize> = (0..self.group.size()).map(|rank| self.length(rank, rank)).collect();
        let source = self.some(counts[self.group.rank()]);
        let ours = if self.call.chooses(2) {
            self.group.ours.all_gather_varying(&source)?.into_values()
        } else {
            let mut ours = self.some(counts.iter().sum());
            self.group.ours.all_gather_varying_into(&source, &mut ours, &counts)?;
            ours
        };
        let mut theirs = self.some(counts.iter().sum());
        let (counts, starts) = parts(&counts);
        self.group
            .theirs
            .all_gather_varcount_into(&source[..], &mut PartitionMut::new(&mut theirs[..], counts, starts));
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    pub(super) fn gather_varying(&mut self) -> Result<()> {
        let (rank, root) = (self.group.rank(), self.root());
        let counts: Vec<usize> = (0..self.group.size()).map(|rank| self.length(rank, root)).collect();
        let source = self.some(counts[rank]);
        let ours = self.group.ours.gather_varying(&source, root)?;
        let process = self.group.theirs.process_at_rank(root as i32);
        if rank != root {
            process.gather_varcount_into(&source[..]);
            return Ok(());
        }
        let mut theirs = self.some(counts.iter().sum());
        let (counts, starts) = parts(&counts);
        process
            .gather_varcount_into_root(&source[..], &mut PartitionMut::new(&mut theirs[..], counts, starts));
        self.comparison.moved(ours.as_ref().map_or(&[], |ours| ours.values()), &theirs);
        Ok(())
    }

    pub(super) fn scatter_varying(&mut self) -> Result<()> {
        let (rank, root) = (self.group.rank(), self.root());
        let counts: Vec<usize> = (0..self.group.size()).map(|rank| self.length(root, rank)).collect();
        let mut theirs = self.some(counts[rank]);
        let process = self.group.theirs.process_at_rank(root as i32);
        let ours = if rank == root {
            let source = self.some(counts.iter().sum());
            let ours = self.group.ours.scatter_varying(&source, &counts, root)?;
            let (counts, starts) = parts(&counts);
            process.scatter_varcount_into_root(&Partition::new(&source[..], counts, starts), &mut theirs[..]);
            ours
        } else {
            let ours = self.group.ours.scatter_varying(&[], &[], root)?;
            process.scatter_varcount_into(&mut theirs[..]);
            ours
        };
        self.comparison.moved(&ours, &theirs);
        Ok(())
    }

    pub(super) fn all_to_all_varying(&mut self) -> Result<()> {
        let (rank, size) = (self.group.rank(), self.group.size());
        let sent: Vec<usize> = (0..size).map(|to| self.length(rank, to)).collect();
        let received: Vec<usize> = (0..size).map(|from| self.length(from, rank)).collect();
        let source = self.some(sent.iter().sum());
        let ours = self.group.ours.all_to_all_varying(&source, &sent)?;
        let mut theirs = self.some(received.iter().sum());
        let ((counts, starts), (sent_counts, sent_starts)) = (parts(&received), parts(&sent));
        self.group.theirs.all_to_all_varcount_into(
            &Partition::new(&source[..], sent_counts, sent_starts),
            &mut PartitionMut::new(&mut theirs[..], counts, starts),
        );
        self.comparison.moved(ours.values(), &theirs);
        Ok(())
    }
}

/// Counts as MPI wants them, and where each block begins.
fn parts(counts: &[usize]) -> (Vec<Count>, Vec<Count>) {
    let starts = counts.iter().scan(0, |end, count| {
        let start = *end;
        *end += *count as Count;
        Some(start)
    });
    (counts.iter().map(|count| *count as Count).collect(), starts.collect())
}
