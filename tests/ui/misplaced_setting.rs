use gradwire::Gradient;

#[derive(Gradient)]
#[gradient(wire = bf16, skip)]
struct Model {
    #[gradient(crate = "gradwire")]
    weight: Vec<f32>,
    #[gradient(skip = true)]
    step: u64,
}

fn main() {}
