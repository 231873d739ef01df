use gradwire::Gradient;

#[derive(Gradient)]
struct Counts {
    seen: usize,
    classes: Vec<[isize; 10]>,
}

fn main() {}
