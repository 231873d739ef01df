//! Messages between two ranks: every rank asks rank 0 for work until there is none left.

use gradwire::{Communicator, Source, Sum};

// ANCHOR: tags
/// "I can work", empty.
const IDLE: u32 = 1;
/// A task, or nothing when all are done.
const TASK: u32 = 2;
// ANCHOR_END: tags

const TASKS: u64 = 20;

fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    let (done, sum) = share_out(&comm)?;
    println!("rank {} did {done} tasks; the sum of all results is {sum}", comm.rank());
    Ok(())
}

/// How many tasks this rank did, and the sum of the squares of all tasks.
fn share_out(comm: &Communicator) -> gradwire::Result<(u64, u64)> {
    let results = if comm.rank() == 0 { hand_out(comm)? } else { work(comm)? };
    let mut sum = [results.iter().sum()];
    comm.all_reduce(&mut sum, Sum)?;
    Ok((results.len() as u64, sum[0]))
}

// ANCHOR: hand_out
/// Rank 0 gives a task to whoever asks first, and does them itself where nobody else is there.
fn hand_out(comm: &Communicator) -> gradwire::Result<Vec<u64>> {
    let mut tasks = 1..=TASKS;
    let mut at_work = comm.size() - 1;
    while at_work > 0 {
        let idle = comm.recv::<u64>(&mut [], Source::Any, IDLE)?;
        match tasks.next() {
            Some(task) => comm.send(&[task], idle.source, TASK)?,
            None => {
                comm.send::<u64>(&[], idle.source, TASK)?;
                at_work -= 1;
            }
        }
    }
    Ok(tasks.map(square).collect())
}
// ANCHOR_END: hand_out

// ANCHOR: work
/// The other ranks ask until they get an empty message.
fn work(comm: &Communicator) -> gradwire::Result<Vec<u64>> {
    let mut results = Vec::new();
    loop {
        comm.send::<u64>(&[], 0, IDLE)?;
        let mut task = [0];
        if comm.recv(&mut task, 0, TASK)?.count == 0 {
            return Ok(results);
        }
        results.push(square(task[0]));
    }
}
// ANCHOR_END: work

fn square(task: u64) -> u64 {
    task * task
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once_however_many_ranks_there_are() {
        for ranks in 1..=4 {
            let done = gradwire::run(ranks, |comm| share_out(&comm).unwrap()).unwrap();
            assert_eq!(done.iter().map(|(done, _)| done).sum::<u64>(), TASKS);
            assert!(done.iter().all(|(_, sum)| *sum == 2870), "{done:?}");
        }
    }
}
