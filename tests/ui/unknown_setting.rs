use gradwire::Gradient;

#[derive(Gradient)]
#[gradient(op = Sum)]
struct Model {
    #[gradient(operation = Max)]
    weight: Vec<f32>,
}

fn main() {}
