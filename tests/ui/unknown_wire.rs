use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    #[gradient(wire = i8)]
    weight: Vec<f32>,
    #[gradient(wire = "bf16")]
    bias: Vec<f32>,
}

fn main() {}
