use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
    active: bool,
    mask: Vec<bool>,
    names: [String; 2],
    letters: Box<[char]>,
}

fn main() {}
