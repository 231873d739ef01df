use gradwire::Gradient;

#[derive(Gradient)]
#[gradient(reduce = Mean)]
struct Model {
    weight: Vec<f32>,
    #[gradient(reduce = "Max")]
    norm: f32,
    #[gradient(reduce = Clip)]
    bias: Vec<f32>,
    #[gradient(reduce)]
    scale: f32,
}

fn main() {}
