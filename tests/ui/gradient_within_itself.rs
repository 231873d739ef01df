use gradwire::Gradient;

#[derive(Gradient)]
struct Tree {
    weight: Vec<f32>,
    next: Box<Tree>,
    children: Vec<Self>,
}

fn main() {}
