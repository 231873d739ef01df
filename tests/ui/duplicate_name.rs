use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
    #[gradient(rename = "weight")]
    other: Vec<f32>,
    #[gradient(rename = "")]
    bias: Vec<f32>,
}

#[derive(Gradient)]
struct Pair(#[gradient(rename = "1")] Vec<f32>, Vec<f32>);

fn main() {}
