use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
struct Pair<T> {
    first: T,
    others: [T; 3],
}

fn main() {}
