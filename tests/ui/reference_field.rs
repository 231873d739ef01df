use gradwire::Gradient;

#[derive(Gradient)]
struct Borrowed<'a> {
    weight: &'a mut [f32],
    bias: Vec<f32>,
}

fn main() {}
