//! The training loop. It is the same on one rank and on many.

use super::{Gradients, Images, Network};
use gradwire::Communicator;
use rayon::ThreadPool;
use std::time::{Duration, Instant};

/// Images of a step, on all ranks together.
const BATCH: usize = 100;
const LEARNING_RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.9;
const SEED: u64 = 1998;

/// What to train, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The images to learn from.
    pub images: &'a Images,
    /// How often to go through them.
    pub epochs: usize,
    /// The rank whose gradients are to be damaged in the last step, after they were reduced.
    pub corrupt_rank: Option<gradwire::Rank>,
}

impl Settings<'_> {
    /// Steps in which all images have been looked at once.
    #[must_use]
    pub fn steps_per_epoch(&self) -> usize {
        self.images.len().div_ceil(BATCH)
    }

    /// Steps in all.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.epochs * self.steps_per_epoch()
    }
}

/// The network at the end, and where the time went.
#[derive(Debug)]
pub struct Trained {
    /// The same on all ranks.
    pub network: Network,
    /// Of this rank, step by step.
    pub times: Vec<Times>,
}

/// Where the time of a step went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Computing gradients and applying them.
    pub computation: Duration,
    /// Waiting for the slowest rank.
    pub waiting: Duration,
    /// Reducing the gradients of all ranks.
    pub communication: Duration,
}

// ANCHOR: train
/// Trains a network on all ranks of `comm`, each computing its part of every batch on the threads of `cores`.
///
/// `report` is told after each step what all ranks found together.
///
/// # Errors
///
/// Those of the communicator.
pub fn train(
    comm: &Communicator,
    cores: &ThreadPool,
    settings: &Settings<'_>,
    mut report: impl FnMut(&Gradients),
) -> gradwire::Result<Trained> {
    // Every rank draws its own weights; those of rank 0 are taken.
    let mut network = Network::random(SEED + comm.rank() as u64);
    comm.broadcast_gradient(&mut network, 0)?;

    let mut gradients = Gradients::zeros();
    let mut velocity = Network::zeros();
    let mut times = Vec::with_capacity(settings.steps());
    for batch in Batches::new(settings) {
        let own = batch.part(comm.rank(), comm.size());
        let share = batch.numbers.len() as f32 / comm.size() as f32;

        let start = Instant::now();
        cores.install(|| gradients.compute(&network, &settings.images.select(own), share));
        let computed = Instant::now();
        comm.barrier()?; // Only to tell waiting from communication.
        let met = Instant::now();
        comm.all_reduce_gradient(&mut gradients)?;
        let reduced = Instant::now();
        if batch.is_last && settings.corrupt_rank == Some(comm.rank()) {
            gradients.corrupt();
        }
        let slopes = gradients.network.tensors();
        for ((parameters, velocities), slopes) in
            network.tensors_mut().into_iter().zip(velocity.tensors_mut()).zip(slopes)
        {
            descend(parameters, velocities, slopes.iter().copied());
        }
        times.push(Times {
            computation: (computed - start) + reduced.elapsed(),
            waiting: met - computed,
            communication: reduced - met,
        });
        report(&gradients);
    }
    Ok(Trained { network, times })
}
// ANCHOR_END: train

/// Stochastic gradient descent with momentum.
pub fn descend(parameters: &mut [f32], velocities: &mut [f32], slopes: impl Iterator<Item = f32>) {
    for ((parameter, velocity), slope) in parameters.iter_mut().zip(velocities).zip(slopes) {
        *velocity = MOMENTUM * *velocity - LEARNING_RATE * slope;
        *parameter += *velocity;
    }
}

/// All batches, in an order that depends neither on the rank nor on the number of ranks.
#[derive(Debug)]
pub struct Batches {
    order: Vec<usize>,
    random: fastrand::Rng,
    /// Images of this epoch that have been handed out.
    done: usize,
    epochs_left: usize,
}

/// The images of one step.
#[derive(Debug)]
pub struct Batch {
    /// Which images.
    pub numbers: Vec<usize>,
    is_last: bool,
}

impl Batches {
    /// Those of a training.
    #[must_use]
    pub fn new(settings: &Settings<'_>) -> Self {
        let order: Vec<usize> = (0..settings.images.len()).collect();
        Self {
            done: order.len(),
            order,
            random: fastrand::Rng::with_seed(SEED),
            epochs_left: settings.epochs,
        }
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        if self.done == self.order.len() {
            self.epochs_left = self.epochs_left.checked_sub(1)?;
            self.random.shuffle(&mut self.order);
            self.done = 0;
        }
        let rest = &self.order[self.done..];
        let numbers = rest[..BATCH.min(rest.len())].to_vec();
        self.done += numbers.len();
        Some(Batch { numbers, is_last: self.epochs_left == 0 && self.done == self.order.len() })
    }
}

impl Batch {
    /// The images of one rank: parts differ by one image at most.
    #[must_use]
    pub fn part(&self, rank: gradwire::Rank, ranks: usize) -> &[usize] {
        let start = |rank| self.numbers.len() * rank / ranks;
        &self.numbers[start(rank)..start(rank + 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_shows_every_image_once_and_every_rank_its_part() {
        let images = Images { pixels: vec![0.0; 64 * 230], labels: vec![0; 230] };
        let settings = Settings { images: &images, epochs: 2, corrupt_rank: None };
        let batches: Vec<Batch> = Batches::new(&settings).collect();
        assert_eq!(batches.len(), settings.steps());
        assert_eq!(
            batches.iter().map(|batch| batch.is_last).collect::<Vec<_>>(),
            [false, false, false, false, false, true]
        );
        for epoch in batches.chunks(settings.steps_per_epoch()) {
            let parts = epoch.iter().flat_map(|batch| (0..7).flat_map(|rank| batch.part(rank, 7)));
            let mut seen: Vec<usize> = parts.copied().collect();
            assert!(!seen.is_sorted());
            seen.sort_unstable();
            assert_eq!(seen, (0..230).collect::<Vec<_>>());
        }
    }
}
