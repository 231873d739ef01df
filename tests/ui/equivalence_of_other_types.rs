use gradwire::Equivalence;

#[derive(Equivalence, Clone, Copy)]
struct Named {
    name: Option<&'static str>,
    letters: [char; 8],
}

fn main() {}
