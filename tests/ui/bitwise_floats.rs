use gradwire::Gradient;

#[derive(Gradient)]
struct Flags {
    #[gradient(reduce = BitwiseOr)]
    overflow: Vec<f32>,
}

fn main() {}
