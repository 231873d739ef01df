use gradwire::Gradient;

#[derive(Gradient)]
struct Head {
    weight: Vec<f32>,
}

#[derive(Gradient)]
struct Model {
    body: Vec<f32>,
    #[gradient(reduce = Max)]
    head: Head,
}

fn main() {}
