use gradwire::Gradient;

#[derive(Gradient)]
#[gradient(reduce = Sum)]
#[gradient(reduce = Average)]
struct Model {
    #[gradient(wire = bf16, wire = f16)]
    weight: Vec<f32>,
}

fn main() {}
