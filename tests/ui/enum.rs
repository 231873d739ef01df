use gradwire::Gradient;

#[derive(Gradient)]
enum Layer {
    Dense { weight: Vec<f32> },
    Skip,
}

fn main() {}
