use gradwire::Gradient;

#[derive(Gradient)]
struct Layer {
    weight: Vec<f32>,
}

#[derive(Gradient)]
struct Model {
    layers: Vec<Layer>,
}

fn main() {}
