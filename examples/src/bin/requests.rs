//! Calls that go on while the program computes: the gradients of one layer travel while those of the next are computed.

use gradwire::{Average, Buffer, Communicator, Gradient, Sum, wait_any};

/// Elements of each layer, the last first: that is the order in which backward propagation comes to them.
const LAYERS: [usize; 3] = [10, 50_000, 200_000];

fn main() -> gradwire::Result<()> {
    let comm = gradwire::init()?;
    overlap(&comm)?;
    collect_names(&comm)?;
    hand_over(&comm)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("threads");
    runtime.block_on(await_them(&comm))?;
    iterate(&comm)?;
    hand_over_a_struct(&comm)?;
    group(&comm)?;
    println!("rank {} of {}: all as it should be", comm.rank(), comm.size());
    Ok(())
}

/// The mean over all ranks of what [`backward`] computes.
fn mean(comm: &Communicator, layer: usize) -> f32 {
    layer as f32 + (comm.size() - 1) as f32 / 2.0
}

/// Stands for the computation of a layer's gradient.
fn backward(comm: &Communicator, layer: usize, gradient: &mut [f32]) {
    gradient.fill((layer + comm.rank()) as f32);
}

// ANCHOR: scope
fn overlap(comm: &Communicator) -> gradwire::Result<()> {
    let mut gradients = LAYERS.map(|count| vec![0.0_f32; count]);
    comm.scope(|scope| {
        for (layer, gradient) in gradients.iter_mut().enumerate() {
            backward(comm, layer, gradient);
            // Goes on while the next layer is computed. Nobody waits for it here: the scope does.
            let _ = scope.all_reduce(gradient, Average);
        }
    })?;
    for (layer, gradient) in gradients.iter().enumerate() {
        assert!(gradient.iter().all(|value| *value == mean(comm, layer)));
    }
    Ok(())
}
// ANCHOR_END: scope

// ANCHOR: varying
fn collect_names(comm: &Communicator) -> gradwire::Result<()> {
    let name = "rank ".repeat(comm.rank() + 1);
    comm.scope(|scope| {
        let names = scope.gather_varying(name.as_bytes(), 0);
        // Nobody but this rank knows yet how long its name is, and it can do something else already.
        let ((), names) = names.wait();
        if let Some(names) = names? {
            assert_eq!(names.of(comm.size() - 1).len(), 5 * comm.size());
        }
        Ok(())
    })?
}
// ANCHOR_END: varying

// ANCHOR: owned
fn hand_over(comm: &Communicator) -> gradwire::Result<()> {
    let mut requests = Vec::new();
    for (layer, count) in LAYERS.into_iter().enumerate() {
        let mut gradient = comm.allocate(count)?;
        backward(comm, layer, &mut gradient);
        requests.push(comm.start_all_reduce(gradient, Average));
    }
    // In whatever order they end.
    let mut layers: Vec<usize> = (0..LAYERS.len()).collect();
    while let Some((index, gradient, result)) = wait_any(&mut requests) {
        result?;
        let layer = layers.remove(index);
        assert!(gradient.iter().all(|value| *value == mean(comm, layer)));
    }
    Ok(())
}
// ANCHOR_END: owned

// ANCHOR: future
async fn await_them(comm: &Communicator) -> gradwire::Result<()> {
    let mut gradient: Buffer<f32> = comm.allocate(LAYERS[1])?;
    backward(comm, 1, &mut gradient);
    let request = comm.start_all_reduce(gradient, Average);
    // It borrows nothing, not even the communicator: it may go to any task.
    let task = tokio::spawn(request);
    let samples = comm.allocate::<u64>(1)?;
    let (samples, result) = comm.start_all_reduce(samples, Sum).await;
    result?;
    assert_eq!(samples[0], 0);
    let (gradient, result) = task.await.expect("the task has not panicked");
    result?;
    assert!(gradient.iter().all(|value| *value == mean(comm, 1)));
    Ok(())
}
// ANCHOR_END: future

// ANCHOR: persistent
fn iterate(comm: &Communicator) -> gradwire::Result<()> {
    let mut step = comm.all_reduce_init(comm.allocate::<f32>(LAYERS[1])?, Average)?;
    for iteration in 0..5 {
        backward(comm, iteration, step.memory_mut()?);
        step.start()?;
        // Time for something else. The gradient is out of reach meanwhile.
        assert!(step.memory().is_err());
        step.wait()?;
        assert!(step.memory()?.iter().all(|value| *value == mean(comm, iteration)));
    }
    Ok(())
}
// ANCHOR_END: persistent

// ANCHOR: structs
#[derive(Gradient)]
#[gradient(reduce = Average)]
struct Step {
    weights: Vec<f32>,
    bias: [f32; 64],
    #[gradient(reduce = Sum)]
    samples: u64,
}

fn hand_over_a_struct(comm: &Communicator) -> gradwire::Result<()> {
    let step = Step { weights: vec![comm.rank() as f32; LAYERS[1]], bias: [1.0; 64], samples: 32 };
    let request = comm.start_all_reduce_gradient(step);
    // The next batch is read meanwhile.
    let (step, result) = request.wait();
    result?;
    assert!(step.weights.iter().all(|weight| *weight == mean(comm, 0)));
    assert_eq!((step.bias[0], step.samples), (1.0, 32 * comm.size() as u64));
    Ok(())
}
// ANCHOR_END: structs

// ANCHOR: grouped
fn group(comm: &Communicator) -> gradwire::Result<()> {
    let mut biases: Vec<Vec<f32>> = (0..100).map(|layer| vec![layer as f32; 16]).collect();
    let mut samples = [32_u64];
    comm.grouped(|calls| {
        biases.iter_mut().try_for_each(|bias| calls.all_reduce(bias, Average))?;
        calls.all_reduce(&mut samples, Sum)
    })?;
    assert!(biases.iter().enumerate().all(|(layer, bias)| bias[0] == layer as f32));
    assert_eq!(samples[0], 32 * comm.size() as u64);
    Ok(())
}
// ANCHOR_END: grouped
