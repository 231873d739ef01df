use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
#[equivalence(packed)]
struct Point {
    #[equivalence(skip)]
    x: f32,
    y: f32,
}

fn main() {}
