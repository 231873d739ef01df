use gradwire::Gradient;

#[derive(Gradient)]
struct Head {
    weight: Vec<f32>,
}

#[derive(Gradient)]
struct Model {
    #[gradient(wire = bf16)]
    head: Head,
}

fn main() {}
