use gradwire::Gradient;
use std::sync::{Arc, Mutex};

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
    bias: Option<Vec<f32>>,
    head: Option<Option<Head>>,
    shared: Arc<Vec<f32>>,
    locked: Mutex<Vec<f32>>,
}

#[derive(Gradient)]
struct Head {
    weight: Vec<f32>,
}

fn main() {}
