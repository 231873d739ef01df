use gradwire::Gradient;

struct Head {
    weight: Vec<f32>,
}

#[derive(Gradient)]
struct Model {
    body: Vec<f32>,
    head: Head,
}

fn main() {}
