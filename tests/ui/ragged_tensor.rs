use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<Vec<f32>>,
}

fn main() {}
