use gradwire::Gradient;
use std::collections::HashMap;

#[derive(Gradient)]
struct Model {
    #[gradient(reduce = Max)]
    layers: HashMap<u32, Vec<f32>>,
}

fn main() {}
