use gradwire::Equivalence;
use std::sync::Arc;

#[derive(Equivalence, Clone)]
struct Sample {
    name: String,
    tags: [String; 4],
    values: Vec<f32>,
    shared: Arc<[f32]>,
    counts: std::collections::HashMap<u32, u32>,
    callback: fn(f32) -> f32,
    pair: (u32, &'static u32),
}

fn main() {}
