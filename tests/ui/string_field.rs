use gradwire::Gradient;

#[derive(Gradient)]
struct Named {
    weight: Vec<f32>,
    name: String,
}

fn main() {}
