use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
    activation: fn(f32) -> f32,
    loss: Box<dyn Fn(f32) -> f32>,
}

fn main() {}
