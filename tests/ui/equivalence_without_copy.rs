use gradwire::Equivalence;

#[derive(Equivalence)]
struct Point {
    x: f32,
    y: f32,
}

fn main() {}
