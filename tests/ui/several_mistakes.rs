use gradwire::Gradient;

#[derive(Gradient)]
#[gradient(reduce = Avg)]
struct Model {
    #[gradient(wire = int8, renamed = "w")]
    weight: Vec<f32>,
    step: usize,
    norm: &'static f32,
}

fn main() {}
