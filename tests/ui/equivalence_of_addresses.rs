use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
struct Borrowed {
    name: &'static str,
    address: *const u8,
    length: usize,
}

fn main() {}
