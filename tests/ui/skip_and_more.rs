use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
    #[gradient(skip, reduce = Max)]
    norm: f32,
}

fn main() {}
