//! Trains a network to read handwritten digits with a parameter server: rank 0 keeps the parameters, the other ranks compute.
//!
//! Started by itself, it starts one server and two workers on this host.
#![forbid(unsafe_code)]

use clap::Parser;
use gradwire::launch::{self, Launcher, Output};
use gradwire::parameters::{Parameters, Role, Server, Staleness, Worker};
use gradwire::{Communicator, Rank};
use gradwire_examples::digits::training::{Batches, descend};
use gradwire_examples::digits::{Gradients, Images, Network, Settings};
use std::error::Error;

/// Trains a network to read handwritten digits with a parameter server.
#[derive(Parser)]
struct Arguments {
    /// How many workers to start.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// How many pushes a worker may be ahead of the slowest one; if nothing is said, all compute on the same parameters.
    #[arg(long)]
    ahead: Option<usize>,
    /// How often to go through the training images.
    #[arg(long, default_value_t = 8)]
    epochs: usize,
    /// A worker that ends in the middle of the training, as if its host had failed.
    #[arg(long, value_name = "RANK")]
    lose: Option<Rank>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if !launch::is_launched()? {
        let launcher = Launcher::this_program()?.ranks(1 + arguments.workers).output(Output::Inherited);
        std::process::exit(launcher.run()?.exit_code());
    }
    let comm = gradwire::init()?;
    let (images, test) = Images::load(concat!(env!("CARGO_MANIFEST_DIR"), "/data/digits.csv").as_ref())?;
    let settings = Settings { images: &images, epochs: arguments.epochs, corrupt_rank: None };
    // ANCHOR: open
    let count = Network::zeros().tensors().map(<[f32]>::len).iter().sum();
    let staleness = arguments.ahead.map_or(Staleness::Synchronous, Staleness::Bounded);
    match Parameters::new(count).staleness(staleness).open(&comm)? {
        Role::Server(server) => serve(server, &arguments, comm.size() - 1, &test)?,
        Role::Worker(worker) => work(worker, &comm, &settings, arguments.lose)?,
    }
    // ANCHOR_END: open
    Ok(())
}

// ANCHOR: server
fn serve(
    server: Server<f32>,
    arguments: &Arguments,
    workers: usize,
    test: &Images,
) -> Result<(), Box<dyn Error>> {
    let mut network = Network::random(1998);
    let mut parameters = network.tensors().concat();
    let mut velocities = vec![0.0; parameters.len()];
    let served = server.serve(&mut parameters, |parameters, push| {
        // Each worker's gradient is the mean of its part of a batch. Those that come late want shorter steps.
        let share = 1.0 / (workers * (1 + arguments.ahead.unwrap_or(0))) as f32;
        descend(parameters, &mut velocities, push.gradient.iter().map(|slope| share * slope));
    })?;
    // ANCHOR_END: server
    let mut rest = &parameters[..];
    for tensor in network.tensors_mut() {
        let (own, others) = rest.split_at(tensor.len());
        tensor.copy_from_slice(own);
        rest = others;
    }
    let accuracy = network.count_right(test) as f64 / test.len() as f64;
    println!("{} steps, lost workers: {:?}, accuracy {:.1} %", served.steps, served.lost, 100.0 * accuracy);
    if accuracy < 0.95 && arguments.epochs >= 8 {
        return Err("the network has not learned enough: at least 95 % were expected".into());
    }
    Ok(())
}

// ANCHOR: worker
fn work(
    mut worker: Worker<f32>,
    comm: &Communicator,
    settings: &Settings<'_>,
    lose: Option<Rank>,
) -> gradwire::Result<()> {
    let (index, workers) = (comm.rank() - 1, comm.size() - 1);
    let (mut network, mut gradients) = (Network::zeros(), Gradients::zeros());
    for (step, batch) in Batches::new(settings).enumerate() {
        if lose == Some(comm.rank()) && step == settings.steps() / 2 {
            std::process::exit(0);
        }
        worker.pull_gradient(&mut network)?;
        let own = settings.images.select(batch.part(index, workers));
        gradients.compute(&network, &own, batch.numbers.len() as f32 / workers as f32);
        worker.push_gradient(&mut gradients.network)?;
    }
    worker.finish()
}
// ANCHOR_END: worker
