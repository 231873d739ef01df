use gradwire::Gradient;

#[derive(Gradient)]
struct Layer<T, U> {
    weight: Vec<T>,
    scale: U,
}

fn main() {}
