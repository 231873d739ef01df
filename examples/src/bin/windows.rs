//! One-sided memory: a counter that hands out work, results in a shared table, and a server that is only waited for.

use gradwire::window::{Keep, Lock};
use gradwire::{Communicator, Rank, Sum};

fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    let done = share_out(&comm)?;
    pair(&comm)?;
    let loss = serve(&comm, 20)?;
    ring(&comm)?;
    println!("rank {} did {done} of {TASKS} tasks; the loss came down to {loss:.3}", comm.rank());
    Ok(())
}

const TASKS: usize = 40;

// ANCHOR: counter
/// Every rank takes the next task from a counter on rank 0, which calls nothing meanwhile but what the others do.
fn share_out(comm: &Communicator) -> gradwire::Result<usize> {
    let rank_0_has = |count: usize| if comm.rank() == 0 { count } else { 0 };
    let next = comm.create_window::<u64>(rank_0_has(1))?;
    let results = comm.create_window::<u64>(rank_0_has(TASKS))?;
    let mut done = 0;
    loop {
        let task = next.fetch_and_op(0, 0, 1, Sum)?;
        if task >= TASKS as u64 {
            break;
        }
        results.put(0, task as usize, &[task * task])?;
        done += 1;
    }
    results.fence()?;
    if comm.rank() == 0 {
        let mut squares = [0; TASKS];
        results.load(0, &mut squares)?;
        assert!(squares.iter().enumerate().all(|(task, square)| *square == (task * task) as u64));
    }
    // Nobody drops its window while others use it.
    next.fence()?;
    Ok(done)
}
// ANCHOR_END: counter

// ANCHOR: lock
/// Two numbers that belong together, changed under a lock by every rank.
fn pair(comm: &Communicator) -> gradwire::Result<()> {
    let window = comm.create_window::<i64>(2)?;
    let owner = comm.size() - 1;
    for _ in 0..10 {
        let lock = window.lock(owner, Lock::Exclusive)?;
        let mut pair = [0; 2];
        window.get(owner, 0, &mut pair)?;
        assert_eq!(pair[0], -pair[1]);
        window.put(owner, 0, &[pair[0] + 1, pair[1] - 1])?;
        lock.unlock()?;
    }
    window.fence()?;
    let mut pair = [0; 2];
    window.get(owner, 0, &mut pair)?;
    let changes = 10 * comm.size() as i64;
    assert_eq!(pair, [changes, -changes]);
    window.fence()
}
// ANCHOR_END: lock

const WEIGHTS: usize = 4;
const TARGET: [f32; WEIGHTS] = [1.0, -2.0, 0.5, 3.0];

// ANCHOR: server
/// Rank 0 keeps the weights of a model, the others push gradients into slots of their own and pull the weights.
fn serve(comm: &Communicator, steps: usize) -> gradwire::Result<f32> {
    let workers = comm.size() - 1;
    if workers == 0 {
        return Ok(0.0);
    }
    // On rank 0: the weights, then a slot for each rank. Elsewhere nothing.
    let count = if comm.rank() == 0 { WEIGHTS * comm.size() } else { 0 };
    let window = comm.create_window::<f32>(count)?;
    let pulled = comm.create_window::<u32>(0)?;
    let loss = if comm.rank() == 0 {
        for _ in 0..steps {
            let mut sum = [0.0; WEIGHTS];
            for _ in 0..workers {
                // In whatever order they come; notice `r` is raised behind the gradient of rank `r`.
                let (rank, _) = window.wait_any_notice(1..comm.size())?;
                let mut gradient = [0.0; WEIGHTS];
                window.load(rank * WEIGHTS, &mut gradient)?;
                sum.iter_mut().zip(gradient).for_each(|(sum, value)| *sum += value);
            }
            let mut weights = [0.0; WEIGHTS];
            window.load(0, &mut weights)?;
            weights.iter_mut().zip(sum).for_each(|(weight, sum)| *weight -= 0.3 * sum / workers as f32);
            window.store(0, &weights)?;
            for rank in 1..comm.size() {
                pulled.put_notify(rank, 0, &[], 0)?;
            }
        }
        0.0
    } else {
        let mut weights = [0.0; WEIGHTS];
        for _ in 0..steps {
            window.get(0, 0, &mut weights)?;
            let gradient: Vec<f32> =
                weights.iter().zip(TARGET).map(|(weight, target)| weight - target).collect();
            window.put_notify(0, comm.rank() * WEIGHTS, &gradient, comm.rank())?;
            pulled.wait_notice(0)?;
        }
        window.get(0, 0, &mut weights)?;
        weights.iter().zip(TARGET).map(|(weight, target)| (weight - target).powi(2)).sum()
    };
    assert!(loss < 0.01, "the model has not learned: {loss}");
    window.fence()?;
    Ok(loss)
}
// ANCHOR_END: server

// ANCHOR: local
/// Between two fences each rank has its own part as a slice; outside of them the parts are everyone's.
fn ring(comm: &Communicator) -> gradwire::Result<()> {
    let right: Rank = (comm.rank() + 1) % comm.size();
    let mut window = comm.create_window::<u32>(100)?;
    window.with_local(|part| part.fill(comm.rank() as u32))?;
    window.accumulate(right, 0, &[10; 100], Sum)?;
    let sum: u32 = window.with_local(|part| part.iter().sum())?;
    assert_eq!(sum, 100 * (comm.rank() as u32 + 10));
    // A read that no accumulate of another rank can split.
    assert_eq!(window.fetch_and_op(comm.rank(), 0, 0, Keep)?, comm.rank() as u32 + 10);
    window.fence()
}
// ANCHOR_END: local

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once_and_the_model_learns() {
        for ranks in 1..=4 {
            let done = gradwire::run(ranks, |comm| {
                let done = share_out(&comm).unwrap();
                pair(&comm).unwrap();
                serve(&comm, 20).unwrap();
                ring(&comm).unwrap();
                done
            });
            assert_eq!(done.unwrap().iter().sum::<usize>(), TASKS);
        }
    }
}
