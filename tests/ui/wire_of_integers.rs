use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    #[gradient(wire = bf16)]
    samples: u64,
}

fn main() {}
