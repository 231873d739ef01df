use gradwire::Gradient;

#[derive(Gradient)]
struct Model {
    weight: Vec<f32>,
    #[gradient(reduce = MinLoc)]
    best: f32,
    #[gradient(reduce = PreMultipliedSum)]
    scaled: Vec<f32>,
    #[gradient(reduce = Average(0.5))]
    other: Vec<f32>,
}

fn main() {}
