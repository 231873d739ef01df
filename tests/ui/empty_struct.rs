use gradwire::Gradient;

#[derive(Gradient)]
struct Local {
    #[gradient(skip)]
    step: usize,
}

fn main() {}
