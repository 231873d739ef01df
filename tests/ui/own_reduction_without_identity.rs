use gradwire::Gradient;

#[derive(Clone, Copy, Debug)]
struct Clip;

#[derive(Gradient)]
struct Model {
    #[gradient(reduce = crate::Clip)]
    weight: Vec<f32>,
}

fn main() {}
