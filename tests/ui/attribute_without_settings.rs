use gradwire::{Equivalence, Gradient};

#[derive(Equivalence, Clone, Copy)]
#[equivalence = "gradwire"]
struct Point {
    x: f32,
}

#[derive(Gradient)]
#[gradient]
struct Model {
    #[gradient(rename = weight)]
    weight: Vec<f32>,
    #[gradient(rename)]
    bias: Vec<f32>,
    #[gradient(rename = "")]
    norm: f32,
}

fn main() {}
