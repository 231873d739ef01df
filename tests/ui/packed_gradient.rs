use gradwire::Gradient;

#[derive(Gradient)]
#[repr(C, packed)]
struct Model {
    scale: f64,
    bias: [f32; 3],
}

fn main() {}
