use gradwire::{Gradient, bf16};

#[derive(Gradient)]
struct Model {
    #[gradient(wire = f32)]
    weight: Vec<bf16>,
    #[gradient(wire = bf16)]
    bias: [half::f16; 3],
}

fn main() {}
