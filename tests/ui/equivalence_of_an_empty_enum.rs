use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
enum Never {}

fn main() {}
