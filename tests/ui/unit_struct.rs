use gradwire::Gradient;

#[derive(Gradient)]
struct Nothing;

fn main() {}
