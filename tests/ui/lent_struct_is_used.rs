use gradwire::{Communicator, Gradient};

#[derive(Gradient)]
#[gradient(reduce = Sum)]
struct Model {
    weights: Vec<f32>,
}

fn meanwhile(comm: &Communicator, model: &mut Model) -> gradwire::Result<()> {
    comm.scope(|scope| {
        let request = scope.all_reduce_gradient(model);
        model.weights[0] = 1.0;
        request.wait().1
    })?
}

fn main() {}
