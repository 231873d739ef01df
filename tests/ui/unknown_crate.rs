use gradwire::{Equivalence, Gradient};

#[derive(Equivalence, Clone, Copy)]
#[equivalence(crate = "gradwire_renamed")]
struct Point {
    x: f32,
}

#[derive(Equivalence, Clone, Copy)]
#[equivalence(crate = "gradwire", crate = ::gradwire)]
struct Line {
    length: f32,
}

#[derive(Gradient)]
#[gradient(crate = "not a path")]
struct Model {
    weight: Vec<f32>,
}

fn main() {}
