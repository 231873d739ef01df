use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    pair: (Vec<f32>, Vec<f32>),
}

fn main() {}
