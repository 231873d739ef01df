use gradwire::Equivalence;

#[derive(Clone, Copy)]
enum Kind {
    Small,
    Large,
}

#[derive(Equivalence, Clone, Copy)]
struct Item {
    kind: Kind,
    wide: u128,
    size: std::num::NonZeroU32,
}

fn main() {}
